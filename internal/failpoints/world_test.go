package failpoints_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/failpoint"
)

// programs are boardd and its drivers, built with their points.
func programs(t *testing.T) string {
	t.Helper()
	return testserver.BuildWith(t, []string{"redis", "zookeeper"}, "failpoints")
}

// world is a server on one store, which somebody starts again whenever it ends.
type world struct {
	*testing.T

	points string // the folder where they are armed
	server *testserver.Server
	client *client.Client

	quit     chan struct{}
	keeper   sync.WaitGroup
	restarts atomic.Int32 // since keep
	process  atomic.Int64 // that was launched last
}

// newWorld makes a server with a data folder of its own. It is not started.
func newWorld(t *testing.T, program, points, driver, setting string) *world {
	t.Helper()
	return newWorldWith(t, program, points, driver, setting, "")
}

// newWorldWith has more blocks in the server's configuration.
func newWorldWith(t *testing.T, program, points, driver, setting, more string) *world {
	t.Helper()
	w := &world{T: t, points: points}
	w.server = testserver.New(t, program, filepath.Join(t.TempDir(), "data"), "--config", testserver.CatalogConfig(t, driver, setting, more))
	w.server.Env = []string{failpoint.Variable + "=" + points}
	var err error
	w.client, err = client.New(client.Config{Addr: w.server.Addr, Token: testserver.RootSecret, RetryFor: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	t.Cleanup(w.leave)
	t.Cleanup(func() {
		if t.Failed() {
			log := w.server.Log()
			t.Logf("the server printed:\n%s", log[max(0, len(log)-8000):])
		}
	})
	return w
}

// maxRestarts is how often a server may end before the test gives up.
const maxRestarts = 4

// keep starts the server, and again whenever it has ended, until stop.
func (w *world) keep() {
	w.Helper()
	w.quit = make(chan struct{})
	w.restarts.Store(0)
	w.launch()
	quit := w.quit
	w.keeper.Go(func() {
		for {
			select {
			case <-quit:
				return
			case <-w.server.Ended():
			}
			if w.restarts.Add(1) > maxRestarts {
				return
			}
			w.launch()
		}
	})
}

func (w *world) launch() {
	w.server.Launch()
	w.process.Store(int64(w.server.PID()))
}

// pid is the process that was launched last.
func (w *world) pid() int { return int(w.process.Load()) }

// ready waits until the server serves.
func (w *world) ready() {
	w.Helper()
	testserver.Eventually(w, "the server is ready", w.server.Ready)
}

// leave has nobody start the server again.
func (w *world) leave() {
	if w.quit != nil {
		close(w.quit)
		w.keeper.Wait()
		w.quit = nil
	}
}

// stop ends the server in order.
func (w *world) stop() {
	w.leave()
	w.server.Stop()
}

// kill ends the server at once.
func (w *world) kill() {
	w.leave()
	w.server.Kill()
}

// arm has a point do something.
func (w *world) arm(point, text string) {
	w.Helper()
	if err := os.WriteFile(w.file(point), []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// fired reports whether it has.
func (w *world) fired(point string) bool {
	_, err := os.Stat(w.file(point) + ".fired")
	return err == nil
}

// disarm takes a point back that has not fired.
func (w *world) disarm(point string) { _ = os.Remove(w.file(point)) }

func (w *world) file(point string) string {
	return filepath.Join(w.points, strings.ReplaceAll(point, "/", "."))
}
