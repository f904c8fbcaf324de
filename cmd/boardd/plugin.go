package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/host/pin"
	"github.com/boardd/boardd/plugins/embedded"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/plugin"
)

func (p *program) pluginCommand() *cobra.Command {
	return p.group("plugin", "List drivers, and check whether one is right",
		"A driver is a program that keeps boards in a store. boardd brings some along; the\n"+
			"others are the executables in plugin_dir, or else in a folder plugins beside\n"+
			"boardd's own program.",
		p.pluginListCommand(), p.pluginNewCommand(), p.pluginBuildCommand(), p.pluginCheckCommand(), p.pluginInstallCommand())
}

// listed is a driver as plugin list shows it.
type listed struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Summary string `json:"summary"`
	SHA256  string `json:"sha256"`  // empty: built in
	Path    string `json:"path"`    // empty: built in
	Problem string `json:"problem"` // why it cannot be asked
}

func (p *program) pluginListCommand() *cobra.Command {
	var dir string
	c := p.command("list [--plugin-dir DIR]", "List the drivers that a server would find",
		"It starts each program in the folder and asks it what it is. Without --plugin-dir the folder is\nplugins beside boardd: no configuration is read, so name the one that yours has as plugin_dir.",
		"boardd plugin list --plugin-dir /usr/lib/boardd/plugins",
		func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return usagef("list takes no arguments, got %q; --plugin-dir names the folder", args[0])
			}
			if dir == "" {
				dir = cmp.Or(p.getenv("BOARDD_PLUGIN_DIR"), pluginsBeside())
			}
			return p.pluginList(ctx, dir)
		})
	c.Flags().StringVar(&dir, "plugin-dir", "", "folder of drivers; BOARDD_PLUGIN_DIR")
	return c
}

func (p *program) pluginList(ctx context.Context, dir string) error {
	builtin := embedded.Program().Info
	list := []listed{{Name: builtin.Name, Version: builtin.Version, Summary: builtin.Summary}}
	if dir != "" {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return usagef("--plugin-dir: %v", err)
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
				continue
			}
			list = append(list, describe(ctx, path))
		}
	}
	if p.output == "json" {
		return json.NewEncoder(p.out).Encode(map[string][]listed{"plugins": list})
	}
	t := &table{}
	t.row("NAME", "VERSION", "SHA-256", "SUMMARY", "PATH")
	for _, l := range list {
		summary, path := l.Summary, l.Path
		if l.Problem != "" {
			summary = l.Problem
		}
		if path == "" {
			path = "(built in)"
		}
		t.row(l.Name, l.Version, shortDigest(l.SHA256), summary, path)
	}
	return t.write(p.out)
}

// describe asks a program what it is. Its name is that of its file, as in the
// configuration.
func describe(ctx context.Context, path string) listed {
	l := listed{Name: filepath.Base(path), Path: path}
	if data, err := os.ReadFile(path); err == nil {
		l.SHA256 = pin.Digest(data)
	}
	process, err := plugin.Start(ctx, plugin.Command{Path: path, SHA256: l.SHA256})
	if err != nil {
		l.Problem = err.Error()
		return l
	}
	defer process.Kill()
	l.Version, l.Summary = process.Info().Version, process.Info().Summary
	return l
}

// pluginFlags are the flags of plugin check.
type pluginFlags struct {
	settings, board, forgetful string
	perCheck                   bool
	only                       []string
	seed                       uint64
}

func (p *program) pluginCheckCommand() *cobra.Command {
	f := &pluginFlags{}
	c := p.command("check PROGRAM|FOLDER [ARG...]", "Run the conformance suite against a driver",
		"It starts the program as a server would and tries everything that a driver must do, on\n"+
			"boards with names made at random. It ends with 1 when something is not as it must be.\n"+
			"A folder with sources is built first, see boardd plugin build.\n"+
			"The store that --config names should be one to try things with.",
		`boardd plugin check ./redis --config '{"address":"127.0.0.1:6379"}'`,
		func(ctx context.Context, args []string) error { return p.pluginCheck(ctx, f, args) })
	flags := c.Flags()
	flags.StringVar(&f.settings, "config", "", "the backend's settings: a JSON object, or @FILE")
	flags.StringVar(&f.board, "board-config", "", "the settings of every board, where {name} stands for the board's name: a JSON object, or @FILE")
	flags.StringVar(&f.forgetful, "forgetful", "", fmt.Sprintf("the settings of a board that forgets its changes after at most %d, {name} as above: a JSON object, or @FILE; without it the check watch/too-late is not made", rememberedChanges))
	flags.BoolVar(&f.perCheck, "process-per-check", false, "start the program anew for each check")
	flags.StringSliceVar(&f.only, "only", nil, "run only this check, or this group of them; may be repeated")
	flags.Uint64Var(&f.seed, "seed", 0, "of the random programs, to repeat a run (default: by chance)")
	return c
}

func (p *program) pluginCheck(ctx context.Context, f *pluginFlags, args []string) error {
	if len(args) == 0 {
		return usagef("which program?")
	}
	path, done, err := checkedProgram(ctx, args[0])
	if err != nil {
		return err
	}
	defer done()
	settings, err := p.object("--config", f.settings)
	if err != nil {
		return err
	}
	board, err := p.object("--board-config", f.board)
	if err != nil {
		return err
	}
	forgetful, err := p.object("--forgetful", f.forgetful)
	if err != nil {
		return err
	}
	u := &underTest{
		command:  plugin.Command{Path: path, Args: args[1:], Logger: slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelWarn}))},
		settings: settings, board: string(board), forgetful: string(forgetful),
	}
	info, err := u.check(ctx)
	if err != nil {
		return findings("%v", err)
	}
	if p.output != "json" {
		fmt.Fprintf(p.out, "%s %s: %s\n", info.Name, info.Version, info.Summary)
	}
	harness := drivertest.Harness{
		Open: u.open, Store: u.store, Hosts: u.hosts, OneHost: info.OneHost, Board: u.spec, PerCheck: f.perCheck, Only: f.only, Seed: f.seed,
	}
	if f.forgetful != "" {
		harness.Forgetful = u.forgetfulSpec
	}
	summary := drivertest.Check(ctx, harness, p.showFinding)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return p.pluginResult(summary)
}

// checkedProgram returns the path of a program, which for a folder with sources is
// built until done is called.
func checkedProgram(ctx context.Context, name string) (path string, done func(), err error) {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		path, err := exec.LookPath(name)
		if err != nil && !errors.Is(err, exec.ErrDot) {
			return "", nil, usagef("%v", err)
		}
		path, err = filepath.Abs(path)
		return path, func() {}, err
	}
	data, err := buildDriver(ctx, name)
	if err != nil {
		return "", nil, err
	}
	work, err := os.MkdirTemp("", "boardd-driver-")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(work, fileName(name))
	return path, func() { _ = os.RemoveAll(work) }, os.WriteFile(path, data, 0o700) //nolint:gosec // a program
}

func (p *program) pluginResult(s drivertest.Summary) error {
	if p.output == "json" {
		if err := json.NewEncoder(p.out).Encode(map[string]int{"passed": s.Passed, "failed": s.Failed}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(p.out, "%d checks passed, %d failed\n", s.Passed, s.Failed)
	}
	if s.Failed > 0 {
		return findings("the driver is not as it must be")
	}
	return nil
}

// checked is the outcome of one check, as -o json prints it.
type checked struct {
	Check    string   `json:"check"`
	Passed   bool     `json:"passed"`
	Problems []string `json:"problems"`
	Notes    []string `json:"notes"`
}

func (p *program) showFinding(f drivertest.Finding) {
	if p.output == "json" {
		line := checked{f.Check, len(f.Problems) == 0, append([]string{}, f.Problems...), append([]string{}, f.Notes...)}
		if err := json.NewEncoder(p.out).Encode(line); err != nil {
			p.complain(err.Error())
		}
		return
	}
	verdict := "ok    "
	if len(f.Problems) > 0 {
		verdict = "FAILED"
	}
	fmt.Fprintf(p.out, "%s  %s\n", verdict, f.Check)
	for _, text := range append(append([]string{}, f.Problems...), f.Notes...) {
		for line := range strings.Lines(text) {
			fmt.Fprintf(p.out, "        %s\n", printable(strings.TrimSuffix(line, "\n")))
		}
	}
}

// underTest is a program that is checked, with a folder for its data.
type underTest struct {
	command          plugin.Command
	settings         []byte
	board, forgetful string // with {name} in them
}

// check starts the program once and looks at what it says of itself.
func (u *underTest) check(ctx context.Context) (driver.Info, error) {
	process, err := plugin.Start(ctx, u.command)
	if err != nil {
		return driver.Info{}, err
	}
	defer process.Kill()
	info := process.Info()
	for _, problem := range info.Config.Check(u.settings) {
		return info, fmt.Errorf("--config: %w", problem)
	}
	for _, problem := range info.Board.Check([]byte(u.board)) {
		return info, fmt.Errorf("--board-config: %w", problem)
	}
	if u.forgetful != "" {
		for _, problem := range info.Board.Check([]byte(u.forgetful)) {
			return info, fmt.Errorf("--forgetful: %w", problem)
		}
	}
	return info, nil
}

// open starts the program anew with a store of its own; it is a
// drivertest.Harness's.
func (u *underTest) open(t drivertest.T) driver.Driver {
	t.Helper()
	return u.openIn(t, t.TempDir())
}

// store makes a store that outlives the program; it is a drivertest.Harness's.
func (u *underTest) store(t drivertest.T) func() driver.Driver {
	t.Helper()
	dir := t.TempDir()
	return func() driver.Driver { return u.openIn(t, dir) }
}

// hosts makes a store that several drivers have open at once; it is a
// drivertest.Harness's.
func (u *underTest) hosts(t drivertest.T) func() (driver.Driver, error) {
	t.Helper()
	dir := t.TempDir()
	return func() (driver.Driver, error) { return u.tryIn(t, dir) }
}

func (u *underTest) openIn(t drivertest.T, dir string) driver.Driver {
	t.Helper()
	d, err := u.tryIn(t, dir)
	if err != nil {
		t.Fatalf("the store does not open: %v", err)
	}
	return d
}

func (u *underTest) tryIn(t drivertest.T, dir string) (driver.Driver, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	process, err := plugin.Start(ctx, u.command)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(process.Kill)
	return process.Open(ctx, driver.Config{Settings: u.settings, DataDir: dir, Logger: u.command.Logger})
}

// rememberedChanges is what a board of --forgetful may remember: more changes are
// made before a watch of the first.
const rememberedChanges = 1000

// spec says how a board is opened; it is a drivertest.Harness's.
func (u *underTest) spec(name string) driver.BoardSpec { return boardSpec(name, u.board) }

// forgetfulSpec says how a board is opened that soon forgets; it is a
// drivertest.Harness's.
func (u *underTest) forgetfulSpec(name string) (driver.BoardSpec, int) {
	return boardSpec(name, u.forgetful), rememberedChanges
}

// boardSpec puts a board's name into settings.
func boardSpec(name, settings string) driver.BoardSpec {
	spec := driver.BoardSpec{Name: name}
	if settings != "" {
		spec.Settings = []byte(strings.ReplaceAll(settings, "{name}", name))
	}
	return spec
}
