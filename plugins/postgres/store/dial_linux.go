package store

import (
	"strings"
	"syscall"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of tcp(7), which the package syscall has no name for.
const tcpUserTimeout = 0x12

// limitSilence bounds for how long what was sent may stay without an acknowledgment. Probes
// are not sent meanwhile, and Linux alone would go on for a quarter of an hour.
func limitSilence(network, _ string, conn syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var failed error
	err := conn.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(goneAfter.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}
