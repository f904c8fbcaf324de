package testserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// dial connects to a host and port or to a unix socket, for a short talk.
func dial(addr string, security *tls.Config) (net.Conn, error) {
	const most = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(most)); err != nil {
		return nil, err
	}
	if security != nil {
		conn = tls.Client(conn, security)
	}
	return conn, nil
}

// talk sends commands to a redis-server or sentinel, one after the other, and
// returns the last answer: errors and states with their first byte, a list as
// its length and then its items, all on lines of their own. It is what starting
// a server takes, and no client: tests of a driver use the driver's.
func talk(addr string, security *tls.Config, commands ...string) (string, error) {
	conn, err := dial(addr, security)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	r, answer := bufio.NewReader(conn), ""
	for _, command := range commands {
		words := strings.Fields(command)
		out := fmt.Appendf(nil, "*%d\r\n", len(words))
		for _, word := range words {
			out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(word), word)
		}
		if _, err := conn.Write(out); err != nil {
			return "", err
		}
		if answer, err = readAnswer(r); err != nil {
			return "", err
		}
	}
	return answer, nil
}

func readAnswer(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	line = strings.TrimRight(line, "\r\n")
	if err != nil || line == "" {
		return "", err
	}
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '$':
		if n < 0 {
			return "", nil
		}
		body := make([]byte, n+2)
		_, err := io.ReadFull(r, body)
		return string(body[:n]), err
	case '*':
		for range n {
			item, err := readAnswer(r)
			if err != nil {
				return "", err
			}
			line += "\n" + item
		}
	}
	return line, nil
}
