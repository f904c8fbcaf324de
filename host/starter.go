package host

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/boardd/boardd/host/config"
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
	command, found, err := h.config.Program(h.Settings(), b.config, b.logger)
	if err != nil {
		return nil, err
	}
	if found != nil && found.Warning != "" {
		b.logger.Warn("the driver's program is not safe", "path", found.Path, "warning", found.Warning)
	}
	return func(ctx context.Context) (*running, error) {
		if found != nil {
			b.startedFrom(found.Path)
		}
		return h.supervised(ctx, b, command)
	}, nil
}

// Program returns how the driver of a backend is started: as a program that boardd
// brings along, or as one of the plugin folder, which is then returned too.
func (c *Config) Program(settings *config.Config, b config.Backend, logger *slog.Logger) (plugin.Command, *supervisor.Found, error) {
	if command, ok := c.Builtin[b.Driver]; ok {
		return command, nil, nil
	}
	var programs []supervisor.Found
	if settings.PluginDir != "" {
		var err error
		if programs, err = supervisor.Find(settings.PluginDir); err != nil {
			logger.Error("the plugin folder cannot be read", "plugin_dir", settings.PluginDir, "error", err)
		}
	}
	for i := range programs {
		if found := &programs[i]; found.Name == b.Driver && found.Skipped == "" {
			return plugin.Command{Path: found.Path, SHA256: b.SHA256}, found, nil
		}
	}
	return plugin.Command{}, nil, c.noDriver(settings, b, programs)
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
		Recall: b.known.Recall,
		Opened: b.known.Opened,
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
	return &running{driver: s, info: info, restarts: func() int64 { return int64(s.State().Restarts) }, forget: s.Forget}, nil
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

func (c *Config) noDriver(settings *config.Config, b config.Backend, programs []supervisor.Found) error {
	names := slices.Concat(slices.Collect(maps.Keys(c.Drivers)), slices.Collect(maps.Keys(c.Builtin)))
	for _, found := range programs {
		if found.Skipped == "" {
			names = append(names, found.Name)
		}
	}
	slices.Sort(names)
	at := settings.Locate("backend", b.Name, "driver")
	if at != "" {
		at += ": "
	}
	where := "no plugin_dir is set"
	if settings.PluginDir != "" {
		where = "in plugin_dir " + settings.PluginDir
	}
	return job.Errorf(job.Invalid, "%sbackend %s: there is no driver %q%s, %s",
		at, b.Name, b.Driver, nearest.Among(b.Driver, slices.Compact(names)), where)
}
