package main

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
)

// asDriver makes this test's program the driver itself.
const asDriver = "BOARDD_TEST_AS_POSTGRES_DRIVER"

func TestMain(m *testing.M) {
	if os.Getenv(asDriver) == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

// launch starts the driver as a process, on a server.
func launch(t drivertest.T, server *testserver.Postgres) (driver.Driver, *plugin.Process) {
	self, err := os.Executable()
	if err != nil {
		t.Fatalf("%v", err)
	}
	settings, err := json.Marshal(map[string]string{"url": server.URL("postgres")})
	if err != nil {
		t.Fatalf("%v", err)
	}
	p, err := plugin.Start(t.Context(), plugin.Command{Path: self, Env: []string{asDriver + "=1"}})
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(p.Kill)
	d, err := p.Open(t.Context(), driver.Config{Settings: settings})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return d, p
}

func start(t drivertest.T, server *testserver.Postgres) driver.Driver {
	d, _ := launch(t, server)
	return d
}

func TestConformanceProcess(t *testing.T) {
	t.Parallel()
	server := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	drivertest.Run(t, drivertest.Harness{
		Programs: 8, // the engine has more in its own test
		Open:     func(t drivertest.T) driver.Driver { return start(t, server) },
		Store:    func(t drivertest.T) func() driver.Driver { return func() driver.Driver { return start(t, server) } },
		Hosts: func(t drivertest.T) func() (driver.Driver, error) {
			return func() (driver.Driver, error) { return start(t, server), nil }
		},
		Leave: func(_ drivertest.T, board string, ids []job.ID) {
			for _, id := range ids {
				server.SQL("postgres", fmt.Sprintf(`INSERT INTO boardd.inbox SELECT nextval('boardd.inbox_numbers'), pg_current_xact_id(), board, '%s', '{}', 2, now(), 'somebody'
					FROM boardd.boards WHERE name = '%s'`, id, board))
			}
		},
		Forgetful: func(name string) (driver.BoardSpec, int) {
			return driver.BoardSpec{Name: name, Settings: []byte(`{"events":16}`)}, 16
		},
	})
}

// TestKilledDriver kills the driver's process under load. What it acknowledged stays,
// what it is not known to have done may be there, and what is repeated by the next one is
// answered as it was.
func TestKilledDriver(t *testing.T) {
	t.Parallel()
	server := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	spec := driver.BoardSpec{Name: "b"}
	var d driver.Driver
	var p *plugin.Process
	begin := func() {
		d, p = launch(t, server)
		status, err := d.OpenBoard(t.Context(), spec)
		if err != nil || status.Loss != "" {
			t.Fatalf("OpenBoard: loss %q, %v", status.Loss, err)
		}
		spec.Witness = status.Witness
	}
	begin()
	const rounds, each = 5, 128
	for round := range rounds {
		ops := make([]driver.Op, each)
		for i := range ops {
			p := &driver.Posting{ID: job.ID{byte(round + 1), byte(i), 1}, Name: "j", Details: []byte(`{}`), Digest: [16]byte{1}}
			ops[i] = driver.Op{Kind: driver.Post, Job: p.ID, Posting: p, Request: [16]byte(p.ID)}
		}
		done := make(chan []driver.Result, 1)
		go func(d driver.Driver) { done <- d.Apply(t.Context(), "b", ops) }(d)
		p.Kill()
		before := <-done
		begin()
		for i, r := range d.Apply(t.Context(), "b", ops) {
			switch first := before[i]; {
			case r.Kind != job.NoKind:
				t.Errorf("op %d again: %v, %s", i, r.Kind, r.Message)
			case first.Kind == job.NoKind && !r.Repeated:
				t.Errorf("op %d was acknowledged, and is done again", i)
			case first.Kind != job.NoKind && first.Kind != job.OutcomeUnknown && first.Kind != job.Unavailable:
				t.Errorf("an op whose driver was killed: %v, %s", first.Kind, first.Message)
			}
		}
	}
	if counts, err := d.Count(t.Context(), "b"); err != nil || counts.Open != rounds*each {
		t.Errorf("%d jobs are open, %v: want %d", counts.Open, err, rounds*each)
	}
}
