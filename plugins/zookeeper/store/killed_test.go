package store_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
)

// mortal is a driver in a process that can be killed and replaced.
type mortal struct {
	driver.Driver // nil: only what is below is used

	t        *testing.T
	program  string
	settings []byte

	mu      sync.Mutex
	process *plugin.Process
	now     driver.Driver
}

// start starts a process, and opens the board in it before anybody uses it.
func (m *mortal) start(spec driver.BoardSpec) {
	p, err := plugin.Start(context.Background(), plugin.Command{Path: m.program})
	if err != nil {
		m.t.Error(err)
		return
	}
	d, err := p.Open(context.Background(), driver.Config{Settings: m.settings})
	if err != nil {
		m.t.Error(err)
		p.Kill()
		return
	}
	if spec.Name != "" {
		if _, err := d.OpenBoard(context.Background(), spec); err != nil {
			m.t.Error(err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.process, m.now = p, d
}

func (m *mortal) alive() driver.Driver {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *mortal) kill() {
	m.mu.Lock()
	p := m.process
	m.mu.Unlock()
	p.Abort() // SIGKILL
}

// OpenBoard, Apply and Read go to the process that lives.
func (m *mortal) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	return m.alive().OpenBoard(ctx, spec)
}

// Apply is Driver's.
func (m *mortal) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	return m.alive().Apply(ctx, board, ops)
}

// Read is Driver's.
func (m *mortal) Read(ctx context.Context, board string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	return m.alive().Read(ctx, board, ids, parts)
}

// TestKilledDriver kills the driver's process again and again under load, and
// then nothing that was acknowledged is lost, and the claims stand.
func TestKilledDriver(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	settings, err := json.Marshal(settingsOf(z.Servers(), nil))
	if err != nil {
		t.Fatal(err)
	}
	m := &mortal{t: t, program: testserver.Build(t, "./plugins/zookeeper"), settings: settings}
	m.start(driver.BoardSpec{})
	t.Cleanup(func() { m.kill() })
	k := sit(t, m, "/taskflow/jobs", nil)
	generation := k.status.Generation
	k.through(func() {
		for range 3 {
			time.Sleep(500 * time.Millisecond)
			m.kill()
			m.start(k.spec)
		}
		time.Sleep(500 * time.Millisecond)
	})
	k.open()
	if k.status.Loss != "" || k.status.Generation != generation {
		t.Errorf("only the driver died, and the board says %q at generation %d", k.status.Loss, k.status.Generation)
	}
}
