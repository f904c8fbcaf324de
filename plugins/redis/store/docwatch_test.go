package store

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
)

// TestDocumentsOfManyBoards watches the documents of 100 boards, changes those of one 50 times,
// and counts what Redis was asked for: a change is looked at by those whom it is for. A message
// of a program of before, which names no space, has everybody look.
func TestDocumentsOfManyBoards(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	s := openStore(t, server.Addr)
	t.Cleanup(func() { _ = s.Close() })
	const boards, changes = 100, 50
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	told := make([]chan driver.Document, boards)
	for i := range told {
		told[i] = make(chan driver.Document, changes+1)
		go func() {
			for change, err := range s.Documents().Watch(ctx, settingsOf(i)) {
				if err != nil {
					return // the test is over
				}
				if !change.Synced {
					told[i] <- change.Document
				}
			}
		}()
	}
	put := func(board int, name string) {
		t.Helper()
		if _, err := s.Documents().Put(t.Context(), settingsOf(board), driver.Document{Name: name}, 0); err != nil {
			t.Fatal(err)
		}
		if doc := <-told[board]; doc.Name != name {
			t.Fatalf("the watcher of board %d is told of %q, want %q", board, doc.Name, name)
		}
	}
	for board := range boards {
		put(board, "begins")
	}
	before := looks(t, server)
	for n := range changes {
		put(7, fmt.Sprint("n", n))
	}
	if got := looks(t, server) - before; got > 10*changes {
		t.Errorf("%d changes on one board of %d took %d reads, want at most 10 each", changes, boards, got)
	}
	before = looks(t, server)
	server.Command("PUBLISH", documentsWake, driver.SettingSpace)
	testserver.Eventually(t, "everybody looks", func() bool { return looks(t, server)-before >= boards })
}

func settingsOf(board int) driver.Space {
	return driver.Space{Board: fmt.Sprint("board-", board), Name: driver.SettingSpace}
}

// looks is how many fields of hashes Redis was asked for.
func looks(t *testing.T, server *testserver.Redis) int {
	t.Helper()
	found := regexp.MustCompile(`cmdstat_hget:calls=(\d+)`).FindStringSubmatch(server.Command("INFO", "commandstats"))
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
