package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/internal/faults/history"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// postNew posts a new job, or several in one call.
func (w *worker) postNew(ctx context.Context) {
	jobs := make([]*client.NewJob, 1)
	if w.random.IntN(3) == 0 {
		jobs = make([]*client.NewJob, 2+w.random.IntN(3))
	}
	for i := range jobs {
		jobs[i] = w.newJob()
	}
	if len(jobs) == 1 && w.random.IntN(3) == 0 {
		w.giveKey(jobs[0])
	}
	w.learn(jobs...) // first, so that others come upon it while it is posted
	w.post(ctx, jobs)
}

func (w *worker) newJob() *client.NewJob {
	j := &client.NewJob{
		Uuid: w.uuid(), Name: fmt.Sprint("job-", w.random.IntN(3)), Priority: boarddv1.Priority_Enum(1 + w.random.IntN(5)),
		Details: fmt.Appendf(nil, `{"n":%d}`, w.random.IntN(1000)),
		Labels:  map[string]string{"of": w.name, teamLabel: teams[w.random.IntN(len(teams))], rankLabel: fmt.Sprint(w.random.IntN(ranks))},
	}
	for range max(0, w.random.IntN(6)-3) {
		j.Operations = append(j.Operations, &client.NewOperation{Name: "step"})
	}
	if w.Timeouts && w.random.IntN(3) == 0 {
		j.Timeout = durationpb.New(time.Second + time.Duration(w.random.IntN(600))*time.Millisecond)
		if !w.Limited && w.random.IntN(2) == 0 { // the last one takes it off the board, and nobody is told when
			j.MaxAttempts = 1 + w.random.Int32N(3)
		}
	}
	return j
}

// giveKey gives a job one of few keys, so that jobs meet. It is to be sure when a job with
// a key is open.
func (w *worker) giveKey(j *client.NewJob) {
	const keep, reject = boarddv1.OnConflict_KEEP, boarddv1.OnConflict_REJECT
	j.Unique = &boarddv1.Unique{Key: fmt.Sprint("key-", w.random.IntN(4)), OnConflict: []boarddv1.OnConflict_Enum{keep, reject}[w.random.IntN(2)]}
	j.MaxAttempts = 0
}

// postAgain posts what somebody has posted, as a client does that got no answer.
func (w *worker) postAgain(ctx context.Context) {
	for _, k := range w.own(1) {
		w.post(ctx, []*client.NewJob{proto.CloneOf(k.posting)})
	}
}

// postOther posts something else under a uuid that is in use.
func (w *worker) postOther(ctx context.Context) {
	for _, k := range w.own(1) {
		other := proto.CloneOf(k.posting)
		other.Details = []byte(`{"n":"another"}`)
		w.post(ctx, []*client.NewJob{other})
	}
}

// own returns up to n of the last jobs without those that TaskFlow posted: of one that
// TaskFlow consumed as well nothing is left, and its uuid may be posted again.
func (w *worker) own(n int) []*known {
	return slices.DeleteFunc(w.some(w.random, n), func(k *known) bool { return k.outside })
}

func (w *worker) post(ctx context.Context, jobs []*client.NewJob) {
	from := w.Recorder.Now()
	posted, err := w.board.Post(ctx, jobs...)
	ops := make([]history.Op, len(jobs))
	for i, err := range client.Each(err, len(jobs)) {
		ops[i] = history.Op{
			Client: w.name, Call: history.Post, Board: w.Board, Job: jobs[i].GetUuid(), Posting: short(jobs[i].GetName(), jobs[i].GetDetails()),
			Priority: int32(jobs[i].GetPriority()), Steps: len(jobs[i].GetOperations()), Retries: w.retries,
			Team: jobs[i].GetLabels()[teamLabel], Key: jobs[i].GetUnique().GetKey(),
			Timeout: jobs[i].GetTimeout().AsDuration(), Attempts: int(jobs[i].GetMaxAttempts()),
		}
		ops[i].Rank, _ = strconv.Atoi(jobs[i].GetLabels()[rankLabel]) // a digit that was written here
		answer(&ops[i], err)
		switch ops[i].Taken = taken(err); {
		case err != nil || i >= len(posted):
		case jobs[i].Unique != nil && posted[i].GetUuid() != jobs[i].GetUuid(): // the one that stands
			ops[i].Outcome, ops[i].Kind, ops[i].Taken = history.Refused, job.AlreadyExists, true
		default:
			ops[i].Sequence = posted[i].GetSequence()
		}
	}
	w.Recorder.Add(from, ops...)
}

// taken reports whether an error says that another job has the key.
func taken(err error) bool {
	return job.KindOf(err) == job.AlreadyExists && strings.Contains(err.Error(), "unique.key")
}

// short is what of a posting is compared. JSON that TaskFlow wrote has spaces.
func short(name string, details []byte) string {
	var compact bytes.Buffer
	if json.Compact(&compact, details) != nil {
		return name + " " + string(details)
	}
	return name + " " + compact.String()
}
