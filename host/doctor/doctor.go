// Package doctor examines a deployment that may not be running: its boards in their
// stores, and what is around them. It starts drivers as a server does, opens boards as
// ones that are only observed, and writes nothing.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/acknowledged"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/memory"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
)

// Finding is one thing that somebody should know of a deployment.
type Finding struct {
	Tenant  string // empty: it concerns a backend
	Board   string
	Backend string
	driver.Finding
}

// How long Examine waits for one driver to start and for one board to open.
const examinePatience = 15 * time.Second

// Examine looks at the boards of a configuration and of its catalog in their stores
// and hands over what it finds, board after board; with whole, first of all at the
// deployment around them. It needs no running server and writes nothing: each board
// is opened as one that is only observed. Only the boards that chosen accepts are
// looked at. An error says that ctx ended.
func Examine(ctx context.Context, c host.Config, whole bool, chosen func(config.Board) bool, found func(Finding)) error {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	d := &deployment{host: c, found: found}
	view := d.catalog(ctx)
	if whole {
		d.run(ctx, view)
	}
	boards := map[string][]config.Board{}
	for _, b := range slices.SortedFunc(maps.Values(directory.Directory{Settings: &c.Config, View: view}.Boards()), func(a, b config.Board) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Name, b.Name))
	}) {
		if chosen(b) {
			boards[b.Backend] = append(boards[b.Backend], b)
		}
	}
	for _, b := range c.Config.Backends {
		if len(boards[b.Name]) == 0 {
			continue
		}
		e := &examination{host: c, backend: b, found: found, whole: whole}
		e.run(ctx, boards[b.Name])
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// examination looks at the boards of one backend.
type examination struct {
	host    host.Config
	backend config.Backend
	found   func(Finding)
	whole   bool // also at what is not a board's
}

func (e *examination) run(ctx context.Context, boards []config.Board) {
	if folder := e.folder(); e.backend.Driver == config.Embedded && existing(folder) == "" {
		e.found(Finding{Backend: e.backend.Name, Finding: driver.Finding{
			Code: "no-store-yet", Severity: driver.Note, Subject: folder,
			Problem: "there is no store yet: the first server that runs with this configuration makes it",
		}})
		return
	}
	e.open(ctx, func(d driver.Driver, info driver.Info) {
		asking, cancel := context.WithTimeout(ctx, examinePatience)
		err := d.Health(asking)
		cancel()
		if err != nil && job.KindOf(err) != job.QuotaExceeded {
			e.down("store-does-not-answer", err)
			return
		}
		if e.whole {
			e.versions(ctx, d, info)
		}
		remembered, err := memory.Read(acknowledged.Folder(e.host.Config.DataDir))
		if err != nil {
			e.backendFinding("memory-unreadable", err)
		}
		for _, b := range boards {
			e.board(ctx, d, info, b, acknowledged.Recall(remembered[acknowledged.Key(e.backend.Name, b.Tenant+"/"+b.Name)]))
		}
	})
}

// folder is the backend's own.
func (e *examination) folder() string {
	return filepath.Join(e.host.Config.DataDir, "backends", e.backend.Name)
}

// open starts the backend's driver for as long as look runs, or tells why it cannot.
func (e *examination) open(ctx context.Context, look func(driver.Driver, driver.Info)) {
	command, err := e.command()
	if err != nil {
		e.down("driver-missing", err)
		return
	}
	process, err := plugin.Start(ctx, command)
	if err != nil {
		e.down("driver-does-not-start", err)
		return
	}
	defer process.Kill()
	info := process.Info()
	if err := e.host.Config.SettingsError("backend", e.backend.Name, info.Config.Check(e.backend.Settings)); err != nil {
		e.down("wrong-settings", err)
		return
	}
	opening, cancel := context.WithTimeout(ctx, examinePatience)
	defer cancel()
	as := driver.Config{Settings: e.backend.Settings, DataDir: existing(e.folder()), Logger: e.host.Logger}
	if e.behind(opening, process, as) {
		return
	}
	d, err := process.Open(opening, as)
	if err != nil {
		e.down("store-does-not-open", err)
		return
	}
	defer func() { _ = d.Close() }()
	look(d, info)
}

// behind tells of a store whose tables are not there or are of an earlier version than the
// driver's, which would make or upgrade them if it opened the store.
func (e *examination) behind(ctx context.Context, process *plugin.Process, as driver.Config) bool {
	m, err := process.Migrate(ctx, as, true)
	if err != nil || m.From >= m.To {
		return false // what the matter is, opening the store tells; most have nothing to upgrade
	}
	f := driver.Finding{
		Code: "tables-behind", Severity: driver.Warning, Subject: "backend " + e.backend.Name, Mend: "boardd backend migrate " + e.backend.Name,
		Problem: fmt.Sprintf("its tables have version %d and the driver's have %d, so nothing in it was looked at: the first server that is started upgrades them, where its settings let it", m.From, m.To),
	}
	if m.From == 0 {
		f.Code, f.Severity = "no-store-yet", driver.Note
		f.Problem = "there are no tables yet: the first server that runs with this configuration makes them, where its settings let it"
	}
	e.found(Finding{Backend: e.backend.Name, Finding: f})
	return true
}

// existing returns the folder, or "" if it is not there: an examination makes
// none.
func existing(folder string) string {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return ""
	}
	return folder
}

// command returns how the backend's driver is started.
func (e *examination) command() (plugin.Command, error) {
	command, _, err := e.host.Program(&e.host.Config, e.backend, e.host.Logger)
	command.Name, command.Logger = e.backend.Driver, e.host.Logger
	return command, err
}

func (e *examination) backendFinding(code string, err error) {
	e.found(Finding{Backend: e.backend.Name, Finding: driver.Finding{
		Code: code, Severity: driver.Problem, Subject: "backend " + e.backend.Name, Problem: plain(err),
	}})
}

// down tells that nobody can use the backend, and what its servers say of that.
func (e *examination) down(code string, err error) {
	f := driver.Finding{Code: code, Severity: driver.Problem, Subject: "backend " + e.backend.Name, Problem: plain(err) + "; a server is not ready without it"}
	if e.backend.Optional {
		f.Severity, f.Problem = driver.Warning, plain(err)+"; a server is ready all the same (required = false), and does not serve its boards"
	}
	e.found(Finding{Backend: e.backend.Name, Finding: f})
}

// board looks at one board.
func (e *examination) board(ctx context.Context, d driver.Driver, info driver.Info, b config.Board, known acknowledged.Board) {
	at := Finding{Tenant: b.Tenant, Board: b.Name, Backend: e.backend.Name}
	found := func(f driver.Finding) {
		at.Finding = f
		e.found(at)
	}
	key := b.Tenant + "/" + b.Name
	if err := e.host.Config.SettingsError("board", key, info.Board.Check(b.Settings)); err != nil {
		found(driver.Finding{Code: "wrong-settings", Severity: driver.Problem, Subject: "board " + b.Name, Problem: plain(err)})
		return
	}
	opening, cancel := context.WithTimeout(ctx, examinePatience)
	defer cancel()
	status, err := d.OpenBoard(opening, driver.BoardSpec{
		Name: key, Settings: b.Settings, Window: b.IdempotencyWindow, Observe: true,
		Witness: known.Witness, Seen: known.Position,
	})
	if err != nil {
		found(driver.Finding{Code: "board-does-not-open", Severity: driver.Problem, Subject: "board " + b.Name, Problem: plain(err)})
		return
	}
	x := &checkup{driver: d, key: key, name: b.Name, status: status, found: found, told: map[string]int{}}
	if err := x.run(ctx); err != nil && ctx.Err() == nil {
		found(driver.Finding{Code: "not-examined", Severity: driver.Problem, Subject: "board " + b.Name, Problem: "the examination ended early: " + plain(err)})
	}
}

// plain is an error as a finding shows it.
func plain(err error) string {
	if e, ok := err.(*job.Error); ok && e.Message != "" { //nolint:errorlint // the outermost message is the one for people
		return e.Message
	}
	if e, ok := err.(*fs.PathError); ok { //nolint:errorlint // likewise
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return err.Error()
}
