package store

import (
	"net"
	"time"
)

// A machine that is gone, or behind what lets nothing through any more, says nothing.
// A connection to it is given up once it has acknowledged nothing for goneAfter: neither
// what was sent, nor the probes that are sent while an answer is awaited.
const (
	probeAfter = 5 * time.Second
	probeEvery = 2 * time.Second
	probes     = 3
	goneAfter  = probeAfter + probes*probeEvery
)

// dialer makes the connections to PostgreSQL.
func dialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeAfter, Interval: probeEvery, Count: probes},
		Control:         limitSilence,
	}
}
