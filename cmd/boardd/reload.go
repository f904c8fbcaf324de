package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/api"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/client"
)

func (p *program) reloadCommand() *cobra.Command {
	return p.command("reload", "Have the server read its configuration anew",
		"It is checked as a whole first: if anything is wrong with it, nothing changes. SIGHUP to\nthe server does the same. What can't change under way, such as the address, needs a restart.",
		"boardd reload",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				answer, err := a.ReloadConfig(ctx)
				if err != nil {
					return err
				}
				return p.show(answer, func(t *table) {
					for _, change := range answer.GetChanges() {
						t.row(change)
					}
					if len(answer.GetChanges()) == 0 {
						t.row("nothing was changed")
					}
				})
			})
		})
}

// reloading is how a server that runs comes to another configuration.
type reloading struct {
	program *program
	source  config.Source
	present *config.Config // that it began with
	server  atomic.Pointer[api.Server]
}

// load reads the files anew, by the same flags and environment.
func (r *reloading) load() (*config.Config, error) {
	c, err := r.program.serverConfig(r.source)
	if err != nil {
		return nil, err
	}
	if c.Dev && c.DataDir == "" {
		c.DataDir = r.present.DataDir // that was made for this run
	}
	return c, nil
}

// swap refuses a configuration whose certificates cannot be used.
func (r *reloading) swap(c *config.Config) error {
	if server := r.server.Load(); server != nil {
		return server.UseTLS(c.TLS)
	}
	return nil
}

// onHangup reloads with each SIGHUP, until stop is called.
func (r *reloading) onHangup(ctx context.Context, h *host.Host, logger *slog.Logger) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		for {
			select {
			case <-signals:
				if _, err := h.Reload(ctx); err != nil {
					logger.Error("the configuration was not changed", "error", err)
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		signal.Stop(signals)
		cancel()
		waiting.Wait()
	}
}
