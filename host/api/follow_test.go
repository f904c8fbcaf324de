package api_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/boardd/boardd/sdk/client"
)

// A thousand followers of one log each see every entry once, in order, and end
// with the job.
func TestThousandFollowers(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c, err := client.New(client.Config{Addr: s.url, Token: rootSecret})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	board := c.Board("default")
	posted, err := board.Post(t.Context(), &client.NewJob{Name: "followed"})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := board.Claim(t.Context(), client.ClaimOptions{Owner: "w", UUIDs: []string{posted[0].GetUuid()}})
	if err != nil {
		t.Fatal(err)
	}
	say := func(i int) {
		t.Helper()
		answer, err := board.AppendLog(t.Context(), claims[0], 0, &client.NewLogEntry{Type: "out", Message: fmt.Sprint(i)})
		if err != nil || answer.GetLastSerial() != int64(i) {
			t.Fatal(answer, err)
		}
	}
	const followers, entries = 1000, 20
	say(1)
	var group, begun sync.WaitGroup
	for f := range followers {
		begun.Add(1)
		first := sync.OnceFunc(begun.Done)
		group.Go(func() {
			defer first()
			last := int64(0)
			for e, err := range board.Log(t.Context(), posted[0].GetUuid(), 0, true) {
				if err != nil || e.GetSerial() != last+1 || e.GetMessage() != fmt.Sprint(e.GetSerial()) {
					t.Errorf("follower %d: %v %v after %d", f, e, err, last)
					return
				}
				last = e.GetSerial()
				first()
			}
			if last != entries {
				t.Errorf("follower %d saw %d entries, want %d", f, last, entries)
			}
		})
	}
	begun.Wait()
	for i := 2; i <= entries; i++ {
		say(i)
	}
	if err := board.Consume(t.Context(), claims[0]); err != nil {
		t.Fatal(err)
	}
	group.Wait()
}
