// Package store is the ZooKeeper driver's engine: boards kept exactly as
// OpenStack TaskFlow's ZooKeeper jobboard keeps them, so that both work one
// board at the same time, and beside them, where TaskFlow does not look, what
// boardd needs besides.
//
// Each transition of a job is one transaction that checks the posting, the lock
// and boardd's own record of the job, and changes what it has to of all three.
// What is known of the jobs in memory only decides which transaction is tried:
// one that was built on old news is refused by ZooKeeper, and tried again with
// what is read then.
package store

import (
	"context"
	"log/slog"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
)

// Program returns the driver.
func Program() driver.Program {
	return driver.Program{
		Info: driver.Info{
			Name:    "zookeeper",
			Version: "1.0.0",
			Summary: "Keeps boards in ZooKeeper as TaskFlow does, and shares them with it.",
			Config:  backendSchema,
			Board:   boardSchema,

			Logbooks: true,
		},
		Open: func(ctx context.Context, c driver.Config) (driver.Driver, error) { return Open(ctx, c, Options{}) },
	}
}

var backendSchema = driver.Schema{Fields: []driver.Field{
	{Name: "servers", Type: driver.StringList, Required: true, Doc: `the ensemble's servers, each as "HOST:PORT"`},
	{Name: "chroot", Type: driver.String, Doc: "a path that is put before every other, such as /openstack; absent: none"},
	{Name: "root", Type: driver.String, Doc: "the folder of boards that name no path, and of boardd's documents; absent: /boardd"},
	{Name: "session_timeout", Type: driver.Duration, Doc: "how long ZooKeeper keeps a session without a connection; absent: 10s"},
	{Name: "auth", Type: driver.Object, Doc: "credentials for ZooKeeper", Fields: []driver.Field{
		{Name: "scheme", Type: driver.String, Doc: "the scheme; absent: digest"},
		{Name: "credentials", Type: driver.String, Required: true, Secret: true, Doc: `for digest, "USER:PASSWORD"`},
	}},
	{Name: "tls", Type: driver.Object, Doc: "TLS to the servers' secureClientPort; {}: with the system's roots", Fields: []driver.Field{
		{Name: "ca_file", Type: driver.String, Doc: "the authority's certificate; absent: the system's roots"},
		{Name: "cert_file", Type: driver.String, Doc: "this client's certificate"},
		{Name: "key_file", Type: driver.String, Doc: "its key"},
		{Name: "server_name", Type: driver.String, Doc: "the name in the servers' certificates; absent: the host's"},
		{Name: "insecure_skip_verify", Type: driver.Boolean, Doc: "take any certificate; for tests"},
	}},
}}

var boardSchema = driver.Schema{Fields: []driver.Field{
	{Name: "path", Type: driver.String, Doc: "TaskFlow's path of the board, such as /taskflow/jobs; absent: one of the board's own below root"},
	{Name: "claims", Type: driver.String, Values: []string{claimsLease, claimsSession}, Doc: "whether a claim outlives the session of boardd's driver; absent: lease"},
	{Name: "foreign", Type: driver.Boolean, Doc: "whether other programs than boardd write to the board; absent: true where a path is given that is not below root"},
	{Name: "max_jobs", Type: driver.Integer, Doc: "more open jobs than this are refused; absent: 25000, at most 100000"},
}}

// How claims made through boardd stand in ZooKeeper.
const (
	claimsLease   = "lease"   // as lasting nodes, until their lease runs out
	claimsSession = "session" // as TaskFlow's own: they end with the driver's session as well
)

// Options are what tests change. The zero value is what everybody else gets.
type Options struct {
	Events int // changes that are remembered for watchers; 0: 8192

	// LogNumbers is how many entries a board's log has before it begins anew; 0:
	// 2^30, half of what ZooKeeper has numbers for.
	LogNumbers int32
}

// Open begins a session with ZooKeeper and waits until it is there, or ctx ends.
func Open(ctx context.Context, c driver.Config, o Options) (driver.Driver, error) {
	settings, err := readSettings(c.Settings)
	if err != nil {
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	settings.session.Logger = c.Logger
	client, err := session.Dial(settings.session)
	if err != nil {
		return nil, err
	}
	if err := client.Ready(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return newStore(client, settings, o, c.Logger), nil
}
