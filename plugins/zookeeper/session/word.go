package session

import (
	"context"
	"io"
	"net"
	"time"
)

// wordTime is how long a server may take to answer a four-letter word.
const wordTime = 5 * time.Second

// Word asks the first server that answers with a four-letter word, such as
// "srvr", on a connection of its own.
func (cl *Client) Word(ctx context.Context, word string) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, wordTime)
	defer cancel()
	for _, server := range cl.config.Servers {
		if answer, err = cl.ask(ctx, server, word); err == nil {
			return answer, nil
		}
	}
	return "", err
}

func (cl *Client) ask(ctx context.Context, server, word string) (string, error) {
	timeout := wordTime
	if deadline, ok := ctx.Deadline(); ok {
		timeout = time.Until(deadline)
	}
	conn, err := cl.dialer()("tcp", server, timeout)
	if err != nil {
		return "", err
	}
	defer func(conn net.Conn) { _ = conn.Close() }(conn) // it was only read from
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(conn, 64<<10))
	return string(text), err
}
