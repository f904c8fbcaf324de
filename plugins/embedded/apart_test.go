package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// extraOf makes an extra of n bytes.
func extraOf(n int) []byte { return bytes.Repeat([]byte{'x'}, n) }

func postWith(n uint64, extra, details []byte) driver.Op {
	op := postOf(numberedID(n))
	op.Posting.Extra, op.Posting.Details = extra, details
	return op
}

// sameParts checks what the store gives of a job's posting.
func sameParts(t *testing.T, s *Store, op *driver.Op, when string) {
	t.Helper()
	for _, parts := range []driver.Parts{0, driver.Details} {
		list, err := s.Read(t.Context(), "b", []job.ID{op.Job}, parts)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		want := op.Posting.Details
		if parts == 0 || len(want) == 0 {
			want = nil
		}
		if got := &list[0].Posting; !bytes.Equal(got.Extra, op.Posting.Extra) || !bytes.Equal(got.Details, want) || (got.Details == nil) != (want == nil) {
			t.Errorf("%s: with parts %d an extra of %d bytes and details of %d, want %d and %d",
				when, parts, len(got.Extra), len(got.Details), len(op.Posting.Extra), len(want))
		}
	}
}

// TestLargeExtra follows jobs whose extra lies with their record, and jobs whose extra
// lies apart, through all that may happen to them, behind a crash and in the file.
func TestLargeExtra(t *testing.T) {
	t.Parallel()
	s, _ := openBoard(t, t.TempDir(), options{}, driver.BoardSpec{MaxFinals: 10, MaxFinalBytes: 1 << 20, Window: time.Hour})
	var ops []driver.Op
	for i, extra := range []int{0, maxSlim, maxSlim + 1, 5000} {
		for k, details := range []int{0, 100} {
			ops = append(ops, postWith(uint64(10*i+k+1), extraOf(extra), benchDetails[:details]))
		}
	}
	mustApply(t, s, ops...)
	check := func(when string) {
		t.Helper()
		for i := range ops {
			sameParts(t, s, &ops[i], when)
		}
		copied, err := openCopy(t, crashed(t, s))
		if err != nil {
			t.Fatal(err)
		}
		for i := range ops {
			sameParts(t, copied, &ops[i], when+", and behind a crash")
		}
	}
	check("posted")
	toFile(t, s)
	check("in the file")
	for i := range ops {
		claim := claimOf(ops[i].Job, [16]byte{byte(i), 1})
		claim.Claim.Parts = driver.Details
		r := mustApply(t, s, claim)[0].Claims[0]
		if p := &r.Record.Posting; !bytes.Equal(p.Extra, ops[i].Posting.Extra) || len(p.Details) != len(ops[i].Posting.Details) {
			t.Errorf("a claim gives an extra of %d bytes and details of %d", len(p.Extra), len(p.Details))
		}
	}
	check("claimed")
	for i := range ops {
		mustApply(t, s, driver.Op{Kind: driver.Trash, Job: ops[i].Job, Precondition: driver.Whatever, Event: job.TrashedEvent})
	}
	check("in the trash")
	for i := range ops {
		mustApply(t, s, driver.Op{Kind: driver.Restore, Job: ops[i].Job, Event: job.Restored})
	}
	check("restored")
	for i := range ops {
		mustApply(t, s, driver.Op{Kind: driver.Remove, Job: ops[i].Job, Precondition: driver.Whatever, Event: job.ConsumedEvent, Ending: &driver.Ending{
			Outcome: job.Consumed, Keep: time.Hour, KeepPosting: true,
		}})
	}
	check("ended")
	for i := range ops {
		mustApply(t, s, driver.Op{Kind: driver.Purge, Job: ops[i].Job, Event: job.PurgedEvent})
	}
	toFile(t, s)
	if err := s.db.View(func(tx *bbolt.Tx) error {
		if n := tx.Bucket(bucketNameOf("b")).Bucket(detailsBucket).Stats().KeyN; n != 0 {
			t.Errorf("%d records of details are left of jobs that are gone", n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestExtraLost takes away what lies beside a job: the job is reported, and no other.
func TestExtraLost(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	s, _ := openBoard(t, path, options{}, driver.BoardSpec{})
	bad, good := postWith(1, extraOf(maxSlim+1), nil), postWith(2, extraOf(maxSlim+1), nil)
	mustApply(t, s, bad, good)
	toFile(t, s)
	err := s.update(func(tx *bbolt.Tx) (bool, error) {
		return true, tx.Bucket(bucketNameOf("b")).Bucket(detailsBucket).Delete(uintKey(1))
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	s, _ = openBoard(t, path, options{}, driver.BoardSpec{})
	if _, err := s.Read(t.Context(), "b", []job.ID{bad.Job}, 0); !errors.Is(err, job.Corrupt) || !strings.Contains(err.Error(), "its details, 257 bytes") {
		t.Errorf("the job is read: %v", err)
	}
	if r := s.Apply(t.Context(), "b", []driver.Op{claimOf(bad.Job, [16]byte{1})})[0]; len(r.Skipped) != 1 || r.Skipped[0].Kind != job.Corrupt {
		t.Errorf("the job is claimed: %+v", r)
	}
	sameParts(t, s, &good, "beside it")
}

// TestFormatSlim opens a store of the format in which each job's record has all of its
// extra.
func TestFormatSlim(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	s, _ := openBoard(t, path, options{}, driver.BoardSpec{})
	old, slim := postWith(1, extraOf(5000), []byte("details")), postWith(2, extraOf(10), nil)
	mustApply(t, s, old, slim)
	toFile(t, s)
	err := s.update(func(tx *bbolt.Tx) (bool, error) {
		b, key := tx.Bucket(bucketNameOf("b")), uintKey(1)
		put := func(bucket []byte, kind byte, body []byte) error {
			value := append(make([]byte, checksumSize), body...)
			seal(kind, key, value)
			return b.Bucket(bucket).Put(key, value)
		}
		var j jobRecord
		if err := j.open(key, b.Bucket(jobsBucket).Get(key)); err != nil {
			return false, err
		}
		details, err := j.join(key, b.Bucket(detailsBucket).Get(key))
		if err != nil {
			return false, err
		}
		details, j.extra, j.apart = bytes.Clone(details), bytes.Clone(j.extra), 0
		return true, errors.Join(
			put(jobsBucket, kindJob, j.append(nil)), put(detailsBucket, kindDetails, details),
			putHead(tx.Bucket(storeBucket), formatKey, binary.AppendUvarint(nil, formatSlim)))
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	s, _ = openBoard(t, path, options{}, driver.BoardSpec{})
	if s.format != formatKeyless {
		t.Errorf("it is of format %d once it was opened", s.format)
	}
	sameParts(t, s, &old, "of the older format")
	sameParts(t, s, &slim, "of either")
	mustApply(t, s, claimOf(old.Job, [16]byte{1}), postWith(3, extraOf(300), nil))
	sameParts(t, s, &old, "claimed")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = openBoard(t, path, options{}, driver.BoardSpec{})
	sameParts(t, s, &old, "opened once more")
}
