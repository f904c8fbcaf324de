package block

import (
	"context"

	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/abi"
)

// question is a batch for one of the exports.
type question struct {
	call    abi.Call
	batch   *policy.Batch
	keys    *policy.Keys // instead of batch
	outSize int
	text    *string // where the block's text goes, if it is the answer
}

func (q *question) len() int {
	if q.keys != nil {
		return len(q.keys.Keys)
	}
	return len(q.batch.Jobs)
}

// ask shows the question in as many blocks as it takes, and read each out area.
// The out areas are only lent.
func (r *Rule) ask(ctx context.Context, q *question, read func(from int, out []byte) error) error {
	for from := 0; from < q.len(); {
		n, err := r.askBlock(ctx, q, from, read)
		if err != nil {
			return err
		}
		from += n
	}
	return nil
}

// askBlock shows as many records as one block has room for.
func (r *Rule) askBlock(ctx context.Context, q *question, from int, read func(from int, out []byte) error) (n int, err error) {
	seat, err := r.machine.Borrow(ctx)
	if err != nil {
		return 0, err
	}
	fit := false
	defer func() { seat.Return(fit) }()

	n = min(q.len()-from, abi.MaxRecords)
	var w writer
	total, err := r.write(&w, seat.Room(), q, from, n)
	for ; retryable(err) && n > 1; total, err = r.write(&w, seat.Room(), q, from, n) {
		clear(seat.Room()) // of records that this block does not have
		n /= 2
	}
	if err != nil {
		fit = true // nothing ran
		if retryable(err) {
			err = tooLarge(from, len(seat.Room()))
		}
		return 0, err
	}
	if err := seat.Call(ctx, q.call, total); err != nil {
		return 0, err
	}
	room := seat.Room()
	if q.text != nil {
		// Where the text stands is known here; what the guest left in the header is not
		// asked.
		putPair(room[abi.HText:], align(len(r.form.prefix)), abi.TextSize)
		*q.text = Text(room)
	}
	if err := read(from, room[w.out:w.out+n*q.outSize]); err != nil {
		return 0, err
	}
	fit = true
	return n, nil
}

func (r *Rule) write(w *writer, room []byte, q *question, from, n int) (total int, err error) {
	if q.keys != nil {
		if err := w.begin(r.form, room, q.call, q.keys.Now, nil, n, abi.KeySize, q.outSize); err != nil {
			return 0, err
		}
		for i := 0; i < n && !w.short; i++ {
			w.key(i, &q.keys.Keys[from+i])
		}
	} else {
		if err := w.begin(r.form, room, q.call, q.batch.Now, q.batch.Worker, n, abi.JobSize, q.outSize); err != nil {
			return 0, err
		}
		for i := 0; i < n && !w.short; i++ {
			w.job(i, &q.batch.Jobs[from+i])
		}
	}
	return w.finish()
}
