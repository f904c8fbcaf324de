package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/api"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/logevent"
	"github.com/boardd/boardd/host/web"
	"github.com/boardd/boardd/sdk/heapfloor"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/tempfolder"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	source    config.Source
	logLevel  string
	logFormat string
	readyFile string

	drainDelay duration
}

func (p *program) serveCommand() *cobra.Command {
	f := &serveFlags{}
	c := p.command("serve [--dev] [--config FILE|DIR]...", "Run the server",
		"With --dev there is nothing to configure: it listens on this machine only, knows the token\n"+
			"\"dev\" with every role, and has a board \"default\" that survives a restart if --data names\n"+
			"its folder. Flags beat the environment, which beats the files. SIGINT and SIGTERM stop the\n"+
			"server once the calls that run have ended: it says at /readyz that it is not ready any more,\n"+
			"and after the drain delay takes no new calls. A second signal stops it at once.",
		"boardd serve --dev\n  boardd serve --config /etc/boardd",
		func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return usagef("serve takes no arguments, got %q; files go into --config", args[0])
			}
			return p.serve(ctx, f)
		})
	flags := c.Flags()
	flags.BoolVar(&f.source.Dev, "dev", false, "a server to try things with")
	flags.StringArrayVar(&f.source.Paths, "config", nil, "configuration file, or folder of *.hcl; may be repeated; BOARDD_CONFIG")
	flags.StringVar(&f.source.Listen, "listen", "", "HOST:PORT to listen on, port 0 for a free one; BOARDD_LISTEN (default "+config.DefaultListen+")")
	flags.StringVar(&f.source.DataDir, "data", "", "folder for what the server keeps; BOARDD_DATA_DIR")
	flags.StringVar(&f.source.PluginDir, "plugin-dir", "", "folder of drivers; BOARDD_PLUGIN_DIR")
	flags.Var(&f.drainDelay, "drain-delay", "how long /readyz says no before a server that ends takes no new calls; BOARDD_DRAIN_DELAY (default "+config.DefaultDrainDelay.String()+", 0 with --dev)")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json; the log goes to standard error")
	flags.StringVar(&f.readyFile, "ready-file", "", "file to write the address to as soon as the server listens")
	return c
}

func (p *program) serve(ctx context.Context, f *serveFlags) error {
	if p.settle != nil {
		p.settle()
	}
	logger, err := p.logger(f.logLevel, f.logFormat)
	if err != nil {
		return err
	}
	if f.source.DrainDelay, err = p.drainDelay(f.drainDelay); err != nil {
		return err
	}
	c, err := p.serverConfig(f.source)
	if err != nil {
		return err
	}
	if err := errIn(placeless(c)); err != nil {
		return err
	}
	for _, e := range c.Exposed() {
		logger.Warn("others than boardd's user can get at a file", "path", e.Path, "problem", e.Problem, "mend", e.Mend)
	}
	// First of all, so that a port that is taken leaves nothing behind.
	ports, err := api.Listen(c)
	if err != nil {
		return listenError(err)
	}
	defer func() { _ = ports.Close() }() // for a server that did not come about
	if f.readyFile != "" {
		_ = os.Remove(f.readyFile) // of one that was killed: nobody is to go by it
	}
	done, err := p.dataFolder(c)
	if err != nil {
		return err
	}
	defer done()
	commands, err := builtinCommands()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	heapfloor.Keep(p.getenv("GOGC"), heapfloor.Large)
	r := &reloading{program: p, source: f.source, present: c}
	h, err := host.Open(ctx, host.Config{
		Config:  *c,
		Builtin: commands,

		PolicyChild: policyChild(self),

		Version: thisBuild().Version,
		Logger:  logger,
		Load:    r.load,
		Swap:    r.swap,
	})
	if err != nil {
		return findings("%v", err)
	}
	if len(h.Directory().Credentials())+len(c.Issuers) == 0 {
		logger.Warn("nobody can call this server: it has neither a token nor an oidc block", "mend", firstToken)
	}
	err = p.serveHost(ctx, h, c, api.Config{Logger: logger, Listeners: ports}, f.readyFile, r)
	return errors.Join(err, h.Close())
}

// drainDelay returns the delay of the flag or of the environment, or nil.
func (p *program) drainDelay(flag duration) (*time.Duration, error) {
	if text := p.getenv("BOARDD_DRAIN_DELAY"); flag.set == nil && text != "" {
		if err := flag.Set(text); err != nil {
			return nil, usagef("BOARDD_DRAIN_DELAY: %v", err)
		}
	}
	if flag.set != nil && *flag.set > config.MaxDrainDelay {
		return nil, usagef("--drain-delay: want at most %s, got %s", config.MaxDrainDelay, flag.set)
	}
	return flag.set, nil
}

// serveHost serves until ctx ends, which is no error.
func (p *program) serveHost(ctx context.Context, h *host.Host, c *config.Config, served api.Config, readyFile string, r *reloading) error {
	ui := web.New(h, web.Config{Logger: served.Logger})
	served.Pages = ui
	server, err := api.NewServer(h, served)
	if err != nil {
		return findings("%v", err)
	}
	r.server.Store(server)
	defer r.onHangup(ctx, h, served.Logger)()
	var pages sync.WaitGroup
	defer pages.Wait()
	showing, hide := context.WithCancel(context.WithoutCancel(ctx)) // they are shown until the server has ended
	defer hide()
	pages.Go(func() { _ = ui.Run(showing) }) // it ends with showing
	address := "http://" + reachable(server.Addr())
	if c.TLS != nil {
		address = "https://" + reachable(server.Addr())
	}
	if readyFile != "" {
		if err := writeReady(readyFile, address); err != nil {
			return errors.Join(err, server.Close())
		}
		defer func() { _ = os.Remove(readyFile) }()
	}
	if err := tellSystemd(p.getenv("NOTIFY_SOCKET"), "READY=1"); err != nil {
		served.Logger.Warn("systemd could not be told that the server listens", "error", err)
	}
	if c.Dev {
		p.greet(address, c.DataDir)
		waiting, cancel := context.WithTimeout(ctx, greetWithin)
		defer cancel()
		if err := h.Started(waiting); err != nil {
			fmt.Fprintf(p.out, "But the board is not ready, and is tried again until it is: %v\n\n", err)
		}
	}
	served.Logger.Info("serving", "address", address, "version", h.Version(), "boards", len(c.Boards))
	err = server.Run(ctx)
	served.Logger.Info("stopped")
	return err
}

// serverConfig reads the configuration.
func (p *program) serverConfig(source config.Source) (*config.Config, error) {
	source.Paths = p.configPaths(source.Paths)
	for _, o := range []struct {
		field *string
		name  string
	}{{&source.Listen, "BOARDD_LISTEN"}, {&source.DataDir, "BOARDD_DATA_DIR"}, {&source.PluginDir, "BOARDD_PLUGIN_DIR"}} {
		if *o.field == "" {
			*o.field = p.getenv(o.name)
		}
	}
	source.Env = p.env
	source.Plugins = pluginsBeside()
	if !source.Dev && len(source.Paths) == 0 {
		return nil, usagef("what to serve? Give --config, or --dev for a server to try things with")
	}
	source.Check = checkDrivers
	return config.Load(source)
}

// devFolders are those in which --dev keeps the data of one run. Servers of before they were
// locked made some that begin with boardd-dev- alone, in which one may live still.
var devFolders = tempfolder.Kind{
	Prefix: "boardd-dev-data-",
	Ours: func(e fs.DirEntry) bool {
		return slices.Contains([]string{"audit", "backends", "host-id", "keys", "memory", "policies", "recordings"}, e.Name())
	},
}

// dataFolder makes the folder for the data. done removes it where it was made for
// this run only.
func (p *program) dataFolder(c *config.Config) (done func(), err error) {
	if c.DataDir == "" && c.Dev {
		folder, err := devFolders.Make("")
		if err != nil {
			return nil, err
		}
		c.DataDir = folder.Path
		fmt.Fprintf(p.out, "No --data was given: the jobs are kept in %s and are gone when the server stops.\n", c.DataDir)
		return func() { _ = folder.Close() }, nil
	}
	if c.DataDir != "" {
		if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
			return nil, usagef("the folder for the data cannot be made: %v; --data (BOARDD_DATA_DIR, data_dir) names it", err)
		}
	}
	return func() {}, nil
}

// logger writes to standard error.
func (p *program) logger(level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usagef("--log-level %q: want debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: l}
	switch strings.ToLower(format) {
	case "text":
		return slog.New(api.LogRequests(slog.NewTextHandler(p.err, options))), nil
	case "json":
		return slog.New(api.LogRequests(logevent.Named(slog.NewJSONHandler(p.err, options)))), nil
	}
	return nil, usagef("--log-format %q: want text or json", format)
}

// listenError says what helps when a port is somebody else's.
func listenError(err error) error {
	known, ok := errors.AsType[*job.Error](err)
	if !ok || !errors.Is(err, syscall.EADDRINUSE) {
		return findings("%v", err)
	}
	elsewhere := "choose another address with --listen"
	if known.Op == "metrics_listen" {
		elsewhere = "choose another address in metrics_listen"
	}
	return findings("%s: another program listens there; %s", known.Message, elsewhere)
}

// reachable is an address that a client on this machine can use.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// writeReady writes the whole file at once, so that nobody reads half an address.
func writeReady(path, address string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".ready-*")
	if err != nil {
		return err
	}
	_, err = file.WriteString(address + "\n")
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	return err
}

// greetWithin is how long a person is kept waiting for a board that does not open.
const greetWithin = 5 * time.Second

// greet says what a person can do now.
func (p *program) greet(address, data string) {
	flags := "--token " + config.DevToken
	if address != "http://"+config.DefaultListen {
		flags = "--addr " + address + " " + flags
	}
	me := commandLine()
	fmt.Fprintf(p.out, `boardd serves the board %q on %s, with the token %q and its data in %s.

  Browser   %s/

Try:

  %s job post hello --details '{"to":"world"}' %s
  %s job list %s
  %s worker run --until-empty %s -- cat

`, config.DevBoard, address, config.DevToken, data, address, me, flags, me, flags, me, flags)
}

// commandLine is how a person in this folder can start this program: by its
// name if a shell finds it, else as go run does, or by its path.
func commandLine() string {
	if _, err := exec.LookPath("boardd"); err == nil {
		return "boardd"
	}
	self, err := os.Executable()
	if err != nil {
		return "boardd"
	}
	if strings.Contains(self, "go-build") {
		return "go run ./cmd/boardd"
	}
	return self
}
