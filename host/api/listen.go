package api

import (
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/job"
)

// Listeners are a server's ports, taken before there is a server.
type Listeners struct {
	main    net.Listener
	metrics net.Listener // nil: none
}

// Listen takes the ports of a configuration. Where that fails, the error's Op is
// the setting that names the address, and errors.Is finds the system's reason.
func Listen(c *config.Config) (*Listeners, error) {
	return listenOn(c.Listen, c.MetricsListen)
}

func listenOn(address, metrics string) (*Listeners, error) {
	if address == "" {
		address = config.DefaultListen
	}
	l := &Listeners{}
	var err error
	if l.main, err = listen("listen", address); err != nil {
		return nil, err
	}
	if metrics == "" {
		return l, nil
	}
	if l.metrics, err = listen("metrics_listen", metrics); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close gives the ports back. It is for those that no Server has.
func (l *Listeners) Close() error {
	err := l.main.Close()
	if l.metrics != nil {
		err = errors.Join(err, l.metrics.Close())
	}
	return err
}

func listen(setting, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address) //nolint:noctx // binding does not block
	if err != nil {
		return nil, &job.Error{Op: setting, Kind: job.Unavailable, Message: "cannot listen on " + address, Err: err}
	}
	return l, nil
}

// sayAgain is how long a listener that takes no connections is silent about it.
const sayAgain = 10 * time.Second

// audible is a listener that says when it cannot take connections. net/http tries again
// by itself, for as long as the process has no file descriptors left, say.
type audible struct {
	net.Listener

	logger *slog.Logger
	said   atomic.Int64 // when, in Unix nanoseconds; 0: never
}

// Accept takes a connection.
func (a *audible) Accept() (net.Conn, error) {
	conn, err := a.Listener.Accept()
	if err == nil || errors.Is(err, net.ErrClosed) {
		return conn, err
	}
	now, said := time.Now().UnixNano(), a.said.Load()
	if said == 0 || now-said >= int64(sayAgain) {
		a.said.Store(now)
		a.logger.Error("connections cannot be taken", "address", a.Addr().String(), "error", err)
	}
	return conn, err
}
