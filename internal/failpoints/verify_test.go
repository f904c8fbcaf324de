package failpoints_test

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/host/recording"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// verify compares the server with what was acknowledged.
func (l *life) verify(when string) {
	l.Helper()
	l.verifyJobs(when)
	l.verifyCatalog(when)
}

func (l *life) verifyJobs(when string) {
	l.Helper()
	for uuids := range slices.Chunk(slices.Sorted(maps.Keys(l.ledger.jobs)), 100) {
		var jobs []*client.Job
		l.must("get", func() (err error) { jobs, err = l.board.Get(l.ctx, client.GetOptions{}, uuids...); return err })
		for i, one := range jobs {
			want := l.ledger.jobs[uuids[i]]
			if got := (ending{one.GetState(), one.GetOutcome()}); got != want {
				l.Errorf("%s: a job that was acknowledged as %v is %v: %v", when, want, got, one)
			}
		}
	}
	for uuid, want := range l.ledger.logs {
		var page *client.LogPage
		l.must("read the log", func() (err error) { page, err = l.board.ReadLog(l.ctx, uuid, 0, 100, 0); return err })
		if got := len(page.GetEntries()); got < want.acknowledged || got > want.sent {
			l.Errorf("%s: the log of %s has %d entries; %d were acknowledged, and %d sent", when, uuid, got, want.acknowledged, want.sent)
		}
	}
	var counts *client.Counts
	l.must("count", func() (err error) { counts, err = l.board.Count(l.ctx); return err })
	open, inTrash := 0, 0
	for _, e := range l.ledger.jobs {
		switch e {
		case waiting:
			open++
		case trashed:
			inTrash++
		}
	}
	if int(counts.Ready+counts.Delayed) != open || counts.Claimed != 0 || int(counts.Trashed) != inTrash {
		l.Errorf("%s: the counts are %v; %d jobs wait, and %d lie in the trash", when, counts, open, inTrash)
	}
}

func (l *life) verifyCatalog(when string) {
	l.Helper()
	admin := l.client.Admin()
	var boards []*boarddv1.BoardSettings
	l.must("list boards", func() (err error) { boards, err = admin.ListBoards(l.ctx, ""); return err })
	var tokens []*boarddv1.Token
	l.must("list tokens", func() (err error) { tokens, err = admin.ListTokens(l.ctx, ""); return err })
	there := map[string]bool{}
	for _, b := range boards {
		there[b.Name] = true
	}
	for name, want := range l.ledger.boards {
		if there[name] != want {
			l.Errorf("%s: the board %s: it is there: %t, want %t", when, name, there[name], want)
		}
	}
	clear(there)
	for _, t := range tokens {
		there[t.Name] = true
	}
	for name, want := range l.ledger.tokens {
		if there[name] != want {
			l.Errorf("%s: the token %s: it is there: %t, want %t", when, name, there[name], want)
		}
	}
}

// verifyFiles looks at what a server that has ended left in its data folder.
func (l *life) verifyFiles() {
	l.Helper()
	findings, _, err := audit.Verify(filepath.Join(l.server.Data, "audit"), nil)
	if err != nil || len(findings) > 0 {
		l.Errorf("the audit log: %v, %v", findings, err)
	}
	noted := map[string]bool{}
	flaws, err := audit.Read(filepath.Join(l.server.Data, "audit"), 0, func(r *audit.Record) bool {
		noted[r.Call+" "+r.Name], noted[r.Call+" "+r.Board] = true, true
		return true
	})
	if err != nil || len(flaws) > 0 {
		l.Errorf("the audit log: %v, %v", flaws, err)
	}
	for _, one := range l.ledger.made {
		if !noted[one] {
			l.Errorf("the audit log does not say: %s", one)
		}
	}
	segments, err := recording.Segments(filepath.Join(l.server.Data, "recordings", "default", boardName))
	if err != nil || len(segments) == 0 {
		l.Errorf("the recording has %d segments, %v", len(segments), err)
	}
	for _, s := range segments {
		for _, err := range recording.Read(s.Path) {
			if err != nil {
				l.Errorf("the recording: %s: %v", s.Path, err)
			}
		}
	}
}
