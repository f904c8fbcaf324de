// Package connect turns a backend's settings into a connection to Redis: one
// server, a unix socket, a master behind Sentinels, or a Cluster.
package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/job"
)

const (
	dialTimeout = 5 * time.Second
	keepAlive   = 30 * time.Second

	// answerTimeout is how long Redis may take to answer, if the caller does not want to
	// know earlier: with appendfsync always it waits for a disk.
	answerTimeout = 10 * time.Second
)

// Connections is how many connections commands use at most at one server, whatever the
// number of boards; one more is subscribed. Redis carries out one command at a time, so
// that more would only wait there instead of here.
const Connections = 6

// A Greeting is called with each new connection before anything else uses it.
// An error refuses the connection, and with it the call that asked for it.
type Greeting func(ctx context.Context, c *redis.Conn) error

// Open returns a client. It connects when it is first used, repeats no command
// that may have taken effect, and is closed by the caller. (On a Cluster, a
// pipeline may be repeated: pipelines are for reading.) Wrong settings are
// Invalid, with the setting's name.
//
// An error while connecting, when nothing was sent yet, is a *net.OpError whose
// Op is "dial".
func Open(raw []byte, greet Greeting) (redis.UniversalClient, error) {
	s, err := read(raw)
	if err != nil {
		return nil, err
	}
	secure, err := s.TLS.config("tls")
	if err != nil {
		return nil, err
	}
	secure = s.require(secure)
	if greet == nil {
		greet = func(context.Context, *redis.Conn) error { return nil }
	}
	if s.Cluster != nil {
		return s.cluster(secure, greet), nil
	}
	client, err := s.master(secure, greet)
	if err != nil {
		return nil, err
	}
	return client, nil
}

// master opens the one server that is written to.
func (s *settings) master(secure *tls.Config, greet Greeting) (*redis.Client, error) {
	switch {
	case s.Sentinels != nil:
		return s.failover(secure, greet)
	case s.URL != "":
		return s.byURL(secure, greet)
	}
	o := &redis.Options{Network: "tcp", Addr: s.Address, Username: s.Username, Password: s.Password, DB: s.DB}
	if isSocket(s.Address) {
		o.Network = "unix"
	}
	return s.single(o, secure, greet), nil
}

// single opens one server. RESP2 is what all versions and proxies speak. go-redis
// would repeat a command whose answer was lost; MaxRetries forbids it.
func (s *settings) single(o *redis.Options, secure *tls.Config, greet Greeting) *redis.Client {
	o.Protocol, o.MaxRetries, o.DisableIdentity, o.OnConnect = 2, -1, true, greet
	o.ContextTimeoutEnabled = true
	o.PoolSize, o.PipelinePoolSize = cmp.Or(o.PoolSize, Connections), samePool
	if o.ReadTimeout == 0 { // the url says nothing else
		o.ReadTimeout = s.answerWithin()
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = s.answer // if that says nothing, go-redis knows better
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = s.connectWithin()
	}
	within := o.DialTimeout
	o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dial(ctx, within, network, address, secure)
	}
	return redis.NewClient(o)
}

// samePool has go-redis keep no connections for pipelines alone.
const samePool = -1

// answerWithin is how long Redis may take to answer.
func (s *settings) answerWithin() time.Duration { return cmp.Or(s.answer, answerTimeout) }

// connectWithin is how long a connection may take to be made.
func (s *settings) connectWithin() time.Duration { return cmp.Or(s.connect, dialTimeout) }

// byURL opens what a URL names. What it does not say, the other settings do.
func (s *settings) byURL(secure *tls.Config, greet Greeting) (*redis.Client, error) {
	o, err := redis.ParseURL(s.URL)
	if err != nil {
		// The error may quote the password.
		return nil, wrong("url", "it cannot be read: want redis://, rediss:// or unix://, then USER:PASSWORD@HOST:PORT/DB")
	}
	for _, twice := range []struct {
		name  string
		clash bool
	}{
		{"username", o.Username != "" && s.Username != ""},
		{"password", o.Password != "" && s.Password != ""},
		{"db", o.DB != 0 && s.DB != 0},
		{"tls", o.Network == "unix" && s.TLS != nil},
		{"socket_timeout", o.ReadTimeout != 0 && s.answer != 0},
		{"socket_connect_timeout", o.DialTimeout != 0 && s.connect != 0},
	} {
		if twice.clash {
			return nil, wrong(twice.name, "the url says something else: want it in one place")
		}
	}
	if o.Username == "" {
		o.Username = s.Username
	}
	if o.Password == "" {
		o.Password = s.Password
	}
	if o.DB == 0 {
		o.DB = s.DB
	}
	if secure == nil {
		secure = s.require(o.TLSConfig) // rediss: trusts the system's roots
	}
	o.TLSConfig = nil // the dialer speaks TLS
	return s.single(o, secure, greet), nil
}

// failover opens the master behind Sentinels, and follows it when they choose
// another one. Sentinels have credentials and TLS of their own.
func (s *settings) failover(secure *tls.Config, greet Greeting) (*redis.Client, error) {
	sentinelSecure, err := s.SentinelTLS.config("sentinel_tls")
	if err != nil {
		return nil, err
	}
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: s.MasterName, SentinelAddrs: s.Sentinels, SentinelUsername: s.SentinelUsername, SentinelPassword: s.SentinelPassword,
		Username: s.Username, Password: s.Password, DB: s.DB,
		Protocol: 2, MaxRetries: -1, DisableIdentity: true, ContextTimeoutEnabled: true, PoolSize: Connections, PipelinePoolSize: samePool,
		DialTimeout: s.connectWithin(), ReadTimeout: s.answerWithin(), WriteTimeout: s.answer,
		OnConnect: greetMaster(greet, func(role string) error {
			return job.Errorf(job.Unavailable, "the Sentinels name a server that is a %s: want the master", role)
		}),
		// go-redis knows one dialer for both. Sentinels that are only discovered are
		// asked when none of those that are named answers, and are taken for a Redis.
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			if slices.Contains(s.Sentinels, address) {
				return dial(ctx, s.connectWithin(), network, address, sentinelSecure)
			}
			return dial(ctx, s.connectWithin(), network, address, secure)
		},
	})
	client.AddHook(searching{})
	return client, nil
}

// greetMaster refuses a server that is no master any more, or not yet: what a
// Sentinel or a node of a cluster says may be old, and one that was greeted before it became
// the master would not be greeted when it matters. Connections to the Sentinels come here, too.
func greetMaster(greet Greeting, refuse func(role string) error) Greeting {
	return func(ctx context.Context, c *redis.Conn) error {
		role := redis.NewSliceCmd(ctx, "role")
		if err := c.Process(ctx, role); err != nil {
			return &job.Error{Kind: job.Unavailable, Message: "the server does not say whether it is the master", Err: err}
		}
		switch name, _ := role.Val()[0].(string); name {
		case "sentinel":
			return nil
		case "master":
			return greet(ctx, c)
		default:
			return refuse(name)
		}
	}
}

func (s *settings) cluster(secure *tls.Config, greet Greeting) *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: s.Cluster, Username: s.Username, Password: s.Password,
		Protocol: 2, MaxRetries: -1, DisableIdentity: true, ContextTimeoutEnabled: true, PoolSize: Connections, PipelinePoolSize: samePool,
		DialTimeout: s.connectWithin(), ReadTimeout: s.answerWithin(), WriteTimeout: s.answer,
		OnConnect: greetMaster(greet, func(string) error {
			return &job.Error{Kind: job.Unavailable, Message: "a node of the cluster is no master any more, or not yet", Err: replica{}}
		}),
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dial(ctx, s.connectWithin(), network, address, secure)
		},
		NewClient: func(o *redis.Options) *redis.Client {
			asking := *o
			asking.OnConnect, asking.PoolSize = nil, 1
			node := redis.NewClient(o)
			node.AddHook(once{})
			node.AddHook(apart{&asking})
			return node
		},
	})
}

// dial connects, and shakes hands where TLS is wanted. All its errors say that
// nothing was sent.
func dial(ctx context.Context, within time.Duration, network, address string, secure *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	conn, err := (&net.Dialer{KeepAlive: keepAlive}).DialContext(ctx, network, address)
	if err != nil || secure == nil {
		return conn, dialing(err)
	}
	over := tls.Client(conn, to(secure, address))
	if err := over.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the handshake's error says more
		return nil, dialing(err)
	}
	return over, nil
}

// dialing makes an error one of connecting.
func dialing(err error) error {
	if err == nil {
		return nil
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return err
	}
	return &net.OpError{Op: "dial", Net: "tcp", Err: err}
}
