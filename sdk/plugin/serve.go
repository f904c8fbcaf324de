package plugin

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// Server returns the id of the process that a person has to stop to end this one: the
// server that started it as a driver, or this process itself if none did.
func Server() int {
	if os.Getenv(CookieName) == CookieValue {
		return os.Getppid()
	}
	return os.Getpid()
}

// Serve is the whole main of a driver: it answers the host that started this
// process until the host ends it or is gone, closes the driver, and returns.
// Without a host it says so and ends the process with status 1.
//
// Standard output belongs to the handshake: Serve takes it first of all, and
// what is written to it from then on comes out in the host's log, as does what is
// written to standard error. Nothing may be printed before Serve.
//
// A panic of the driver in a call is the error of that call. A driver that finds
// its own state damaged should end its process.
func Serve(program driver.Program) {
	stdout := takeStdout()
	if os.Getenv(CookieName) != CookieValue {
		fmt.Fprintf(os.Stderr, "%s this is a boardd driver; put it into plugin_dir and name it in a backend, "+
			"or try it with `boardd plugin check %s`\n", calledAs(program), os.Args[0])
		os.Exit(1)
	}
	log := hclog.New(&hclog.LoggerOptions{Level: hostLevel(), Output: os.Stderr, JSONFormat: true})
	s := newServer(program, slog.New(toHclog{out: log}))
	s.first = keepStderr(os.Stderr)
	go watchHost(s, os.Getppid())
	go obeyTerm(s)
	os.Stdout = stdout // the handshake is printed there, and nothing else
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  handshake(),
		VersionedPlugins: plugins([]int{Protocol}, &grpcPlugin{server: s}),
		GRPCServer:       s.grpc,
		Logger:           hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: os.Stderr, JSONFormat: true}),
	})
	finish(s)
}

// keepStderr undoes what go-plugin does to standard output and standard error when
// it begins to serve: through its pipes the last words of a process are lost.
func keepStderr(stderr *os.File) func() {
	return func() { os.Stdout, os.Stderr = stderr, stderr }
}

func calledAs(program driver.Program) string {
	if program.Info.Name == "" {
		return "driver:"
	}
	return program.Info.Name + ":"
}

// closeTimeout is how long a driver may take to close when nobody waits for it.
const closeTimeout = 10 * time.Second

func finish(s *server) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := s.drain(ctx); err != nil {
		s.logger.Warn("the driver was not closed in order", "error", err)
	}
}

// obeyTerm closes the driver and ends the process on SIGTERM.
func obeyTerm(s *server) {
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	<-terms
	finish(s)
	os.Exit(0)
}

// hostPoll is how often a driver looks whether its host is there. It finds the
// end of one that was killed; on Linux the kernel is faster.
const hostPoll = 250 * time.Millisecond

// watchHost ends the process when its parent is gone.
func watchHost(s *server, parent int) {
	for range time.Tick(hostPoll) {
		if os.Getppid() != parent {
			s.logger.Warn("the host is gone; the driver ends")
			finish(s)
			os.Exit(0)
		}
	}
}

func hostLevel() hclog.Level {
	if level := hclog.LevelFromString(os.Getenv(LogLevelName)); level != hclog.NoLevel {
		return level
	}
	return hclog.Info
}

// grpcPlugin registers the service where go-plugin asks for it, and gives the host
// the connection that go-plugin made.
type grpcPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
	server *server
}

// GRPCServer registers the driver's service.
func (p *grpcPlugin) GRPCServer(_ *goplugin.GRPCBroker, g *grpc.Server) error {
	pb.RegisterDriverServer(g, p.server)
	return nil
}

// GRPCClient returns the connection.
func (p *grpcPlugin) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}
