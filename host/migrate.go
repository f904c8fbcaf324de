package host

import (
	"context"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
)

// Migrate has the driver of one backend make or upgrade what its store needs, such as
// tables; with dry it only says what it would do. It needs no running server, and stops
// none. A driver that has nothing to migrate is Unsupported.
func Migrate(ctx context.Context, c *Config, backend string, dry bool) (m driver.Migration, err error) {
	for i := range c.Config.Backends {
		b := c.Config.Backends[i]
		if b.Name != backend {
			continue
		}
		command, _, err := c.Program(&c.Config, b, c.Logger)
		if err != nil {
			return m, err
		}
		command.Name, command.Logger = b.Driver, c.Logger
		process, err := plugin.Start(ctx, command)
		if err != nil {
			return m, err
		}
		defer process.Kill()
		if err := c.Config.SettingsError("backend", b.Name, process.Info().Config.Check(b.Settings)); err != nil {
			return m, err
		}
		return process.Migrate(ctx, driver.Config{Settings: b.Settings, Logger: c.Logger}, dry)
	}
	return m, job.Errorf(job.Invalid, "the configuration has no backend %q", backend)
}
