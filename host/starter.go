package host

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
)

// starter finds the driver that a backend names and returns what starts it.
func (h *Host) starter(b *backend) (func(context.Context) (*running, error), error) {
	name := b.config.Driver
	if program, ok := h.config.Drivers[name]; ok {
		return func(ctx context.Context) (*running, error) { return h.inProcess(ctx, b, program) }, nil
	}
	return nil, h.noDriver(b)
}

// inProcess opens a driver that needs no process of its own.
func (h *Host) inProcess(ctx context.Context, b *backend, program driver.Program) (*running, error) {
	if err := b.check(h, program.Info); err != nil {
		return nil, err
	}
	folder, err := b.folder(h.config.Config.DataDir)
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
	c := &h.config.Config
	names := slices.Concat(slices.Collect(maps.Keys(h.config.Drivers)), programs(c.PluginDir))
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

// programs returns the names of the drivers in a folder.
func programs(folder string) []string {
	if folder == "" {
		return nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		if executable(filepath.Join(folder, entry.Name())) {
			names = append(names, entry.Name())
		}
	}
	return names
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&fs.ModePerm&0o111 != 0
}
