package store_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestBoardOfBefore opens a board as the driver of commit fe678ac wrote it, with every sort of
// record: seven jobs, of which one is claimed, one was given up, one is in the trash and one
// ended. Each is what it was, and can be worked on.
func TestBoardOfBefore(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	restore(t, server, "board-of-fe678ac.json")
	b := newBench(t, server, func(s *driver.BoardSpec) {
		s.Name, s.Settings = "default/jobs", []byte(`{"namespace":"default/jobs","foreign":false}`)
	})
	open := scanned(b, driver.OpenJobs)
	var names []string
	for _, r := range open {
		names = append(names, r.Posting.Name)
	}
	if want := []string{"waits", "urgent", "held", "claimed", "abandoned"}; !slices.Equal(names, want) {
		t.Fatalf("the open jobs are %v, want %v", names, want)
	}
	if got := b.read(open[0].Posting.ID); string(got.Posting.Details) != `{"path":"/a.png","n":1.0}` || len(got.Posting.Extra) == 0 {
		t.Errorf("details %s and %d bytes of the host's own", got.Posting.Details, len(got.Posting.Extra))
	}
	if open[1].Posting.Priority != job.VeryHigh {
		t.Errorf("its priority is %v, want VERY_HIGH", open[1].Posting.Priority)
	}
	if h := open[3].Holder; h == nil || h.Owner != "worker-claimed" || h.Token.Epoch == 0 {
		t.Errorf("the claim is %+v, want worker-claimed's", h)
	}
	trash := scanned(b, driver.TrashedJobs)
	if len(trash) != 1 || trash[0].Posting.Name != "trashed" {
		t.Fatalf("the trash is %+v", trash)
	}
	before := open[3].Holder.Token.Epoch
	b.must(driver.Op{Kind: driver.Restore, Job: trash[0].Posting.ID, Event: job.Restored})
	for _, id := range []job.ID{open[0].Posting.ID, open[4].Posting.ID, trash[0].Posting.ID} {
		c := b.claim(id, "w")
		if c.Token.Epoch <= before {
			t.Errorf("a token of epoch %d after one of %d", c.Token.Epoch, before)
		}
		b.must(tokenOp(driver.Remove, c))
	}
	b.post("new")
	if got := b.counts(); got.Open != 4 || got.Trashed != 0 {
		t.Errorf("%d jobs are open and %d in the trash, want 4 and 0", got.Open, got.Trashed)
	}
}

// restore writes keys into a server as Redis' DUMP gave them.
func restore(t *testing.T, server *testserver.Redis, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string][]byte
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer c.Close()
	for key, dump := range keys {
		if err := c.Restore(t.Context(), key, time.Duration(0), string(dump)).Err(); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
}

// scanned returns the records of a set, in the order of their posts.
func scanned(b *bench, set driver.Set) (list []driver.Record) {
	b.Helper()
	for page, err := range b.d.Scan(b.Context(), b.board, driver.ScanRequest{Set: set}) {
		if err != nil {
			b.Fatal(err)
		}
		if len(page.Bad) > 0 {
			b.Errorf("records that cannot be read: %+v", page.Bad)
		}
		list = append(list, page.Records...)
	}
	slices.SortFunc(list, func(a, b driver.Record) int { return cmp.Compare(a.Posting.Sequence, b.Posting.Sequence) })
	return list
}
