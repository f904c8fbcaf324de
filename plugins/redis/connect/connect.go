// Package connect turns a backend's settings into a connection to Redis.
package connect

import (
	"context"
	"encoding/json"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Schema declares the settings of a backend that say where Redis is.
func Schema() driver.Schema {
	return driver.Schema{Fields: []driver.Field{
		{Name: "address", Type: driver.String, Doc: "host:port, or the path of a unix socket; absent: 127.0.0.1:6379"},
		{Name: "db", Type: driver.Integer, Doc: "the number of the logical database; absent: 0"},
	}}
}

// A Greeting is called with each new connection before anything else uses it.
// An error refuses the connection, and with it the call that asked for it.
type Greeting func(ctx context.Context, c *redis.Conn) error

// Open returns a client. It connects when it is first used, repeats no command
// by itself, and is closed by the caller.
func Open(settings []byte, greet Greeting) (redis.UniversalClient, error) {
	var s struct {
		Address string `json:"address"`
		DB      int    `json:"db"`
	}
	if len(settings) > 0 {
		if err := json.Unmarshal(settings, &s); err != nil {
			return nil, job.Errorf(job.Invalid, "the settings cannot be read: %v", err)
		}
	}
	if s.Address == "" {
		s.Address = "127.0.0.1:6379"
	}
	network := "tcp"
	if s.Address[0] == '/' {
		network = "unix"
	}
	return redis.NewClient(&redis.Options{
		Network: network, Addr: s.Address, DB: s.DB, Protocol: 2,
		MaxRetries: -1, OnConnect: greet, DisableIdentity: true,
	}), nil
}
