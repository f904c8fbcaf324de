package plugin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/mem"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/wire"
)

// What was read stays as it is when gRPC uses its buffer for another message, and
// to append to one field leaves the next one alone.
func TestCodecKeepsWhatItRead(t *testing.T) {
	t.Parallel()
	sent := driver.Change{
		Event: job.ClaimedEvent, Job: job.ID{1}, Position: 7, Reason: "reason", Owner: "owner",
		Record: &driver.Record{
			Posting: driver.Posting{ID: job.ID{1}, Name: "name", Details: []byte("details"), Extra: []byte("extra")},
			State:   job.Claimed, Status: []byte("status"), Version: 3, Position: 7, Final: []byte("final"),
			Attached: []driver.Attachment{{Name: "a", Data: []byte("one")}, {Name: "b", Data: []byte("two")}},
			Holder:   &driver.Holder{Owner: "owner", Token: job.Token{Generation: 1, Epoch: 2}},
		},
	}
	var data []byte
	keep := func(message []byte) error { data = message; return nil }
	if err := wire.SendChanges(&driver.Changes{List: []driver.Change{sent}}, func(int) []byte { return nil }, keep); err != nil {
		t.Fatal(err)
	}
	var m frame
	if err := (codec{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, &m); err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] = 0xff
	}
	var changes driver.Changes
	if _, err := wire.AddChanges(&changes, m.bytes); err != nil {
		t.Fatal(err)
	}
	rec := changes.List[0].Record
	for _, field := range [][]byte{rec.Posting.Details, rec.Posting.Extra, rec.Status, rec.Final, rec.Attached[0].Data} {
		_ = append(field, "something that is longer than what follows"...)
	}
	if diff := cmp.Diff([]driver.Change{sent}, changes.List); diff != "" {
		t.Errorf("the change is another one (-sent +read):\n%s", diff)
	}
}
