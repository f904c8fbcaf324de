package host

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/supervisor"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
	"github.com/boardd/boardd/sdk/plugin"
)

// starter finds the driver that a backend names and returns what starts it.
func (h *Host) starter(b *backend) (func(context.Context) (*running, error), error) {
	name := b.config.Driver
	if program, ok := h.config.Drivers[name]; ok {
		return func(ctx context.Context) (*running, error) { return h.inProcess(ctx, b, program) }, nil
	}
	if command, ok := h.config.Builtin[name]; ok {
		return func(ctx context.Context) (*running, error) { return h.supervised(ctx, b, command) }, nil
	}
	for _, found := range h.programs() {
		if found.Name == name && found.Skipped == "" {
			if found.Warning != "" {
				b.logger.Warn("the driver's program is not safe", "path", found.Path, "warning", found.Warning)
			}
			return func(ctx context.Context) (*running, error) {
				b.startedFrom(found.Path)
				return h.supervised(ctx, b, plugin.Command{Path: found.Path})
			}, nil
		}
	}
	return nil, h.noDriver(b)
}

// programs returns what lies in the plugin folder.
func (h *Host) programs() []supervisor.Found {
	folder := h.Settings().PluginDir
	if folder == "" {
		return nil
	}
	found, err := supervisor.Find(folder)
	if err != nil {
		h.logger.Error("the plugin folder cannot be read", "plugin_dir", folder, "error", err)
	}
	return found
}

// firstStart is how long a driver may take for its store to be opened the first
// time before its boards, which then say that they wait for it, are begun.
const firstStart = 5 * time.Second

// supervised runs a driver's program. The program is first asked what it is, so
// that wrong settings are reported with their place in the user's files.
func (h *Host) supervised(ctx context.Context, b *backend, command plugin.Command) (*running, error) {
	command.Name = b.config.Driver
	if command.Logger == nil {
		command.Logger = b.logger
	}
	process, err := plugin.Start(ctx, command)
	if err != nil {
		return nil, err
	}
	info := process.Info()
	process.Kill()
	if err := b.check(h, info); err != nil {
		return nil, err
	}
	folder, err := b.folder(h.Settings().DataDir)
	if err != nil {
		return nil, err
	}
	s := supervisor.New(supervisor.Spec{
		Name: b.config.Name, Command: command, Settings: b.config.Settings, DataDir: folder, Logger: h.logger,
		Recall: b.recall,
	})
	// It ends with Close, after the boards, and not with ctx.
	b.processes.Go(func() {
		if err := s.Run(context.WithoutCancel(ctx)); err != nil {
			b.logger.Error("the driver is not kept running any more", "error", err)
		}
	})
	waiting, cancel := context.WithTimeout(ctx, firstStart)
	defer cancel()
	if err := s.Ready(waiting); job.KindOf(err) == job.Invalid {
		_ = s.Close()
		return nil, err
	}
	return &running{driver: s, info: info, restarts: func() int64 { return int64(s.State().Restarts) }}, nil
}

// inProcess opens a driver that needs no process of its own.
func (h *Host) inProcess(ctx context.Context, b *backend, program driver.Program) (*running, error) {
	if err := b.check(h, program.Info); err != nil {
		return nil, err
	}
	folder, err := b.folder(h.Settings().DataDir)
	if err != nil {
		return nil, err
	}
	d, err := program.Open(ctx, driver.Config{Settings: b.config.Settings, DataDir: folder, Logger: b.logger})
	if err != nil {
		return nil, err
	}
	return &running{driver: d, info: program.Info}, nil
}

func (h *Host) noDriver(b *backend) error {
	c := h.Settings()
	names := slices.Concat(slices.Collect(maps.Keys(h.config.Drivers)), slices.Collect(maps.Keys(h.config.Builtin)))
	for _, found := range h.programs() {
		if found.Skipped == "" {
			names = append(names, found.Name)
		}
	}
	slices.Sort(names)
	at := c.Locate("backend", b.config.Name, "driver")
	if at != "" {
		at += ": "
	}
	where := "no plugin_dir is set"
	if c.PluginDir != "" {
		where = "in plugin_dir " + c.PluginDir
	}
	return job.Errorf(job.Invalid, "%sbackend %s: there is no driver %q%s; there are [%s], %s",
		at, b.config.Name, b.config.Driver, nearest.Hint(b.config.Driver, names), strings.Join(slices.Compact(names), ", "), where)
}
