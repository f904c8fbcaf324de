package plugin

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"

	"google.golang.org/grpc"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
	"github.com/boardd/boardd/sdk/plugin/internal/wire"
)

// A server answers the calls of driver.proto with a program's driver.
type server struct {
	pb.UnimplementedDriverServer
	program  driver.Program
	logger   *slog.Logger
	draining chan struct{}  // closed when no new call is taken
	drained  chan struct{}  // closed when the driver is closed
	calls    sync.WaitGroup // added to under mu, and only before closing: Wait may miss none
	begun    sync.Once
	first    func() // is run before the first answer; nil: nothing

	mu       sync.Mutex
	opening  bool
	driver   driver.Driver // nil before Configure
	closing  bool
	closeErr error // not guarded by mu: read after drained
}

func newServer(program driver.Program, logger *slog.Logger) *server {
	return &server{program: program, logger: logger, draining: make(chan struct{}), drained: make(chan struct{})}
}

// grpc returns a gRPC server that serves s and whatever else is registered.
func (s *server) grpc(options []grpc.ServerOption) *grpc.Server {
	options = append(options, serverOptions()...)
	options = append(options, grpc.ChainUnaryInterceptor(s.unary), grpc.ChainStreamInterceptor(s.stream))
	return grpc.NewServer(options...)
}

// begin counts a call as under way; done must be called at its end.
func (s *server) begin() (d driver.Driver, done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing:
		return nil, nil, job.Errorf(job.Unavailable, "the driver is draining")
	case s.driver == nil:
		return nil, nil, job.Errorf(job.Precondition, "the driver was not configured: call Configure first")
	}
	s.calls.Add(1)
	return s.driver, s.calls.Done, nil
}

func (s *server) Info(context.Context, *pb.InfoRequest) (*pb.InfoResponse, error) {
	s.begun.Do(func() {
		if s.first != nil {
			s.first()
		}
	})
	return wire.InfoTo(s.program.Info), nil
}

func (s *server) Configure(ctx context.Context, req *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	s.mu.Lock()
	busy, closing := s.opening || s.driver != nil, s.closing
	s.opening = !closing
	s.mu.Unlock()
	switch {
	case closing:
		return nil, job.Errorf(job.Unavailable, "the driver is draining")
	case busy:
		return nil, job.Errorf(job.Precondition, "the driver is configured already: start another process")
	}
	if problems := s.program.Info.Config.Check(req.Settings); len(problems) > 0 {
		s.opened(nil)
		return nil, job.Errorf(job.Invalid, "%s", problems[0].Error())
	}
	d, err := s.open(ctx, driver.Config{Settings: req.Settings, DataDir: req.DataDir, Logger: s.logger})
	if err != nil {
		s.opened(nil)
		return nil, err
	}
	if s.opened(d) {
		return &pb.ConfigureResponse{}, nil
	}
	return nil, errors.Join(job.Errorf(job.Unavailable, "the driver is draining"), d.Close())
}

// open opens the driver. A panic becomes an error, so that Configure can be tried again.
func (s *server) open(ctx context.Context, c driver.Config) (d driver.Driver, err error) {
	defer s.guard("Open", &err)
	return s.program.Open(ctx, c)
}

// opened reports whether d may be used: it may not if draining began meanwhile.
func (s *server) opened(d driver.Driver) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening = false
	if s.closing {
		return false
	}
	s.driver = d
	return true
}

// Drain waits for what is under way as long as ctx lasts and closes the driver in
// any case.
func (s *server) Drain(ctx context.Context, _ *pb.DrainRequest) (*pb.DrainResponse, error) {
	return &pb.DrainResponse{}, s.drain(ctx)
}

func (s *server) drain(ctx context.Context) error {
	s.mu.Lock()
	first, d := !s.closing, s.driver
	s.closing = true
	s.mu.Unlock()
	if first {
		close(s.draining)
		go s.finish(d)
	}
	select {
	case <-s.drained:
		return s.closeErr
	case <-ctx.Done():
		return job.Errorf(job.Interrupted, "calls are still under way")
	}
}

func (s *server) finish(d driver.Driver) {
	defer close(s.drained)
	s.calls.Wait()
	if d != nil {
		defer s.guard("Close", &s.closeErr)
		s.closeErr = d.Close()
	}
}

// guard turns a panic into an error of the call in which it happened.
func (s *server) guard(method string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	s.logger.Error("the driver panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
	*err = job.Errorf(job.Internal, "the driver panicked in %s: %v", method, p)
}

const servicePrefix = "/" + "boardd.driver.v1.Driver" + "/"

func (s *server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (res any, err error) {
	method, ours := strings.CutPrefix(info.FullMethod, servicePrefix)
	if !ours {
		return handler(ctx, req)
	}
	func() {
		defer s.guard(method, &err)
		res, err = handler(ctx, req)
	}()
	if err == nil {
		return res, nil
	}
	status, trailer := failure(err)
	_ = grpc.SetTrailer(ctx, trailer)
	return nil, status
}

func (s *server) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	method, ours := strings.CutPrefix(info.FullMethod, servicePrefix)
	if !ours {
		return handler(srv, stream)
	}
	func() {
		defer s.guard(method, &err)
		err = handler(srv, stream)
	}()
	if err == nil {
		return nil
	}
	status, trailer := failure(err)
	stream.SetTrailer(trailer)
	return status
}
