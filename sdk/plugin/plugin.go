// Package plugin carries a driver across a process boundary. Serve is the whole
// main of a driver; Start runs such a program and gives its driver to the host;
// Pipe does both in one process, for tests.
//
// The protocol is gRPC on a unix socket with the handshake of
// github.com/hashicorp/go-plugin; driver.proto and docs/writing-a-driver.md
// describe it for other languages.
//
// Locks. In a driver's process these are server.mu and outbox.mu, in the host's
// executor.mu, Process.mu and child.mu. Each is held alone, while memory is read or
// written (Process.mu also while one line is logged), and never while a message is sent
// or waited for, the driver is called, or a process is started or ended. ExecBatch has a
// mutex of its own for the answer that it gathers. The output of a process is logged with
// logRelay.mu held, lineLog.mu before it: there the log may keep the process waiting, and
// nobody else.
package plugin

import (
	"context"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/boardd/boardd/sdk/plugin/internal/wire"
)

// The handshake. A host sets the variable CookieName to CookieValue, so that a
// driver can tell that it was started by a host and not by a person; this is no
// secret. A driver answers with one line on standard output.
const (
	// Protocol is the version of driver.proto that Serve speaks. Fields and calls
	// may be added to it; a change that an older side would misread gets a new
	// version, and hosts go on accepting the old one.
	Protocol = 1

	CookieName  = "BOARDD_DRIVER"
	CookieValue = "c0b5a9f4d1e74c6aa0f3b1b92a8b6d1f"
)

// accepted are the versions of the protocol that a host takes, lowest first. It
// offers them in PLUGIN_PROTOCOL_VERSIONS, and the driver chooses one.
var accepted = []int{Protocol}

// Variables that a host sets for a driver beside the cookie.
const (
	// LogLevelName is the least important level that the host shows: "debug",
	// "info", "warn" or "error".
	LogLevelName = "BOARDD_LOG_LEVEL"
)

// MaxMessage is the size of the largest message that either side takes, in bytes.
const MaxMessage = wire.MaxMessage

// Limits on one batch of Exec.
const (
	maxBatchOps     = 1024 // where a board asks for so many
	defaultBatchOps = 256  // of all boards in it, where none does
	maxBatchBytes   = 1 << 20
	maxInFlight     = 8
	defaultInFlight = 2
)

// window is how many bytes may be on their way on a connection, or on one stream
// of it. It is fixed: to find one out, gRPC would send a ping with each message,
// which wakes both processes once more for each call.
const window = 8 << 20

const pluginName = "driver"

func handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{ProtocolVersion: Protocol, MagicCookieKey: CookieName, MagicCookieValue: CookieValue}
}

// plugins is the one plugin, once for each of these versions of the protocol.
func plugins(versions []int, p *grpcPlugin) map[int]goplugin.PluginSet {
	sets := make(map[int]goplugin.PluginSet, len(versions))
	for _, version := range versions {
		sets[version] = goplugin.PluginSet{pluginName: p}
	}
	return sets
}

// serverOptions are those of every server, in a process of its own or not.
func serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{}),
		grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxSendMsgSize(MaxMessage),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
	}
}

// dialOptions are those of every connection to a driver. A connection never goes
// idle: a driver takes the end of all connections for the end of its host.
func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
	}
}

// bounded gives ctx a deadline that is at most d from now.
func bounded(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}
