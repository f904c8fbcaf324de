package store_test

import (
	"bufio"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
)

// A command is one that a server was sent, as MONITOR shows it.
type command struct {
	name   string   // in lower case
	words  []string // behind the name
	script bool     // a script sent it
	text   string
}

// words finds what MONITOR quotes.
var words = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)

// monitor has a server show every command that it is sent, until what it returns is
// called, which returns them.
func monitor(t *testing.T, server *testserver.Redis) func() []command {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil || !lines.Scan() {
		t.Fatalf("MONITOR: %v", err)
	}
	return func() (list []command) {
		t.Helper()
		server.Command("ECHO", "finished")
		for lines.Scan() && !strings.Contains(lines.Text(), `"finished"`) {
			c := command{text: lines.Text(), script: strings.Contains(lines.Text(), " lua]")}
			for _, w := range words.FindAllStringSubmatch(c.text, -1) {
				c.words = append(c.words, w[1])
			}
			c.name, c.words = strings.ToLower(c.words[0]), c.words[1:]
			list = append(list, c)
		}
		if err := lines.Err(); err != nil {
			t.Fatalf("MONITOR: %v", err)
		}
		return list
	}
}
