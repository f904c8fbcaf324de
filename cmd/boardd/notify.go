package main

import "net"

// tellSystemd says what this program has come to, as sd_notify(3) has it: where a unit of
// Type=notify has started it, systemd waits for that. Without a socket nobody does.
func tellSystemd(socket, state string) error {
	if socket == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"}) // one that begins with @ has no file
	if err != nil {
		return err
	}
	_, err = c.Write([]byte(state))
	if closed := c.Close(); err == nil {
		err = closed
	}
	return err
}
