package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// Command says which program to run, and how.
type Command struct {
	Path string   // of the program; a path, never looked up
	Args []string // without the program's name
	Dir  string   // its working folder; empty: the host's

	// Env is added to the few variables that a driver gets of the host's: PATH,
	// HOME, TMPDIR, TZ and LANG. Secrets belong into the settings.
	Env []string

	// SHA256 is the hexadecimal digest of the program; empty: any will do. On
	// Linux the very file that was checked is run. Elsewhere somebody who may
	// write to its folder could replace it between check and start.
	SHA256 string

	Name    string        // in messages and in the log; empty: the program's file name
	Logger  *slog.Logger  // gets the driver's log; nil: none
	Timeout time.Duration // to start; 0: 10 s
}

// DefaultStartTimeout is how long a program may take to say its handshake.
const DefaultStartTimeout = 10 * time.Second

// hostVariables are what a driver gets of the host's environment.
var hostVariables = []string{"PATH", "HOME", "TMPDIR", "TZ", "LANG"}

// A Process is a driver's running program. Kill must be called in the end, also
// when it ended by itself.
type Process struct {
	name     string
	child    *child
	client   *goplugin.Client
	answer   *pb.InfoResponse
	info     driver.Info
	cold     *grpc.ClientConn // go-plugin's own
	hot      *grpc.ClientConn
	exited   chan struct{}
	faulty   chan struct{}
	killing  sync.Once
	killed   chan struct{}
	mu       sync.Mutex
	faultErr error
	driver   *remote
}

// Start runs a program and asks it what it is. An error names the program and
// quotes what it printed.
func Start(ctx context.Context, c Command) (*Process, error) {
	if c.Name == "" {
		c.Name = filepath.Base(c.Path)
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultStartTimeout
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("driver %s: %w", c.Name, err)
	}
	kid, err := prepare(&c)
	if err != nil {
		return nil, fmt.Errorf("driver %s: %w", c.Name, err)
	}
	p := &Process{
		name: c.Name, child: kid, exited: make(chan struct{}), faulty: make(chan struct{}), killed: make(chan struct{}),
	}
	p.client = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  handshake(),
		VersionedPlugins: plugins(accepted, &grpcPlugin{}),
		RunnerFunc: func(_ hclog.Logger, spec *exec.Cmd, _ string) (runner.Runner, error) {
			kid.cmd.Env = append(append(kid.cmd.Env, spec.Env...), goplugin.EnvUnixSocketDir+"="+kid.sockets.Path)
			return kid, nil
		},
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: kid.sockets.Path},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		SkipHostEnv:      true,
		StartTimeout:     c.Timeout,
		GRPCDialOptions:  dialOptions(),
		Logger:           hclog.NewNullLogger(),
		SyncStdout:       &lineLog{relay: kid.relay},
		SyncStderr:       &lineLog{relay: kid.relay},
	})
	if err := p.begin(ctx); err != nil {
		err = p.why(ctx, err, c.Timeout)
		p.Abort()
		return nil, err
	}
	go p.await()
	return p, nil
}

// why returns the error of a failed start. It waits a moment for a process that is
// ending, since how it ended says more than err.
func (p *Process) why(ctx context.Context, err error, timeout time.Duration) error {
	if cause := context.Cause(ctx); cause != nil {
		p.child.blame(cause)
	} else if strings.HasPrefix(err.Error(), "timeout") {
		p.child.blame(fmt.Errorf("it did not say its handshake within %v", timeout))
	} else if p.child.started() {
		select {
		case <-p.child.exited:
		case <-time.After(outputGrace):
		}
	}
	return p.child.explain(err)
}

// begin runs the program; the end of ctx ends it.
func (p *Process) begin(ctx context.Context) error {
	begun := make(chan struct{})
	defer close(begun)
	go func() {
		select {
		case <-ctx.Done():
			p.child.killUnless(begun)
		case <-begun:
		}
	}()
	address, err := p.client.Start()
	if err != nil {
		return err
	}
	protocol, err := p.client.Client()
	if err != nil {
		return err
	}
	raw, err := protocol.Dispense(pluginName)
	if err != nil {
		return err
	}
	p.cold = raw.(*grpc.ClientConn)
	p.hot, err = grpc.NewClient("passthrough:///driver", append(dialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, address.Network(), address.String())
		}))...)
	if err != nil {
		return err
	}
	p.answer, p.info, err = fetchInfo(ctx, p.cold)
	return err
}

// prepare makes everything that a process needs, and checks the program.
func prepare(c *Command) (*child, error) {
	kid := &child{
		name: c.Name, mark: mark(), logger: orDiscard(c.Logger).With("plugin", c.Name), began: make(chan struct{}), exited: make(chan struct{}), swept: make(chan struct{}),
		cmd: &exec.Cmd{Path: c.Path, Args: append([]string{c.Path}, c.Args...), Dir: c.Dir},
	}
	kid.relay = newLogRelay(kid.logger)
	info, err := os.Stat(c.Path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder, want a program", c.Path)
	case info.Mode()&0o111 == 0:
		return nil, fmt.Errorf("%s is not executable: chmod +x it", c.Path)
	}
	for _, name := range hostVariables {
		if value, ok := os.LookupEnv(name); ok {
			kid.cmd.Env = append(kid.cmd.Env, name+"="+value)
		}
	}
	kid.cmd.Env = append(append(kid.cmd.Env, LogLevelName+"="+levelName(kid.logger)), c.Env...)
	kid.cmd.Env = append(kid.cmd.Env, failpoint.Environment()...)
	if kid.mark != "" {
		kid.cmd.Env = append(kid.cmd.Env, kid.mark)
	}
	isolate(kid.cmd)
	if c.SHA256 != "" {
		if kid.binary, err = pinned(c.Path, c.SHA256); err != nil {
			return nil, err
		}
		runChecked(kid.cmd, kid.binary)
	}
	if kid.sockets, err = socketDir(); err != nil {
		kid.release()
		return nil, err
	}
	return kid, nil
}

func levelName(l *slog.Logger) string {
	levels := []hclog.Level{hclog.Trace, hclog.Debug, hclog.Info, hclog.Warn}
	i := slices.IndexFunc(levels, func(level hclog.Level) bool { return l.Enabled(context.Background(), slogLevel(level)) })
	if i < 0 {
		return hclog.Error.String()
	}
	return levels[i].String()
}

// pinned opens a program and makes sure that it is the one that was meant.
func pinned(path, want string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	digest := sha256.New()
	if _, err := io.Copy(digest, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if got := hex.EncodeToString(digest.Sum(nil)); !strings.EqualFold(got, want) {
		return nil, errors.Join(fmt.Errorf("%s has the SHA-256 %s, and %s is demanded", path, got, want), f.Close())
	}
	return f, nil
}

// release frees what prepare made.
func (c *child) release() {
	if c.binary != nil {
		_ = c.binary.Close()
	}
	if c.sockets != nil {
		_ = c.sockets.Close()
	}
}
