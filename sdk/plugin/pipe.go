package plugin

import (
	"context"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
	"github.com/boardd/boardd/sdk/plugin/internal/wire"
)

// Pipe opens a program's driver in this process and returns it as a host sees it:
// everything goes through the messages and the calls of the protocol. It is for
// tests. Closing the driver closes the program's.
func Pipe(ctx context.Context, program driver.Program, c driver.Config) (driver.Driver, error) {
	return pipeTo(ctx, func(g *grpc.Server, s *server) { pb.RegisterDriverServer(g, s) }, program, c)
}

func pipeTo(ctx context.Context, register func(*grpc.Server, *server), program driver.Program, c driver.Config) (driver.Driver, error) {
	listener := bufconn.Listen(1 << 20)
	s := newServer(program, orDiscard(c.Logger))
	g := s.grpc(nil)
	register(g, s)
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(listener) })
	p := pipe{server: g, serving: &serving}
	d, err := p.open(ctx, listener, c)
	if err != nil {
		p.close()
		return nil, err
	}
	return d, nil
}

type pipe struct {
	server  *grpc.Server
	serving *sync.WaitGroup
	conns   []*grpc.ClientConn
}

func (p *pipe) open(ctx context.Context, listener *bufconn.Listener, c driver.Config) (driver.Driver, error) {
	for range 2 {
		conn, err := grpc.NewClient("passthrough:///pipe", append(dialOptions(),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
		if err != nil {
			return nil, err
		}
		p.conns = append(p.conns, conn)
	}
	cold := p.conns[1]
	info, _, err := fetchInfo(ctx, cold)
	if err != nil {
		return nil, err
	}
	if err := configure(ctx, cold, c); err != nil {
		return nil, err
	}
	return newRemote(ctx, info, p.conns[0], cold, func(err error) { orDiscard(c.Logger).Error("the driver is faulty", "error", err) }, p.close)
}

func (p *pipe) close() {
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.server.Stop()
	p.serving.Wait()
}

// fetchInfo asks a driver what it is.
func fetchInfo(ctx context.Context, conn grpc.ClientConnInterface) (*pb.InfoResponse, driver.Info, error) {
	m, err := unary(ctx, call{op: "info"}, infoTimeout, func(ctx context.Context, options ...grpc.CallOption) (*pb.InfoResponse, error) {
		return pb.NewDriverClient(conn).Info(ctx, &pb.InfoRequest{}, options...)
	})
	if err != nil {
		return nil, driver.Info{}, err
	}
	info, err := wire.InfoFrom(m)
	if err == nil && info.Name == "" {
		err = errors.New("the driver does not say its name")
	}
	if err != nil {
		return nil, driver.Info{}, &job.Error{Op: "info", Kind: job.Unavailable, Err: err}
	}
	return m, info, nil
}

func configure(ctx context.Context, conn grpc.ClientConnInterface, c driver.Config) error {
	_, err := unary(ctx, call{op: "configure"}, configureTimeout, func(ctx context.Context, options ...grpc.CallOption) (*pb.ConfigureResponse, error) {
		return pb.NewDriverClient(conn).Configure(ctx, &pb.ConfigureRequest{Settings: c.Settings, DataDir: c.DataDir}, options...)
	})
	return err
}
