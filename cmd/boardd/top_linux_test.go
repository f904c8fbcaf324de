package main

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// TestTopOnTerminal draws the boards anew as they change, sorted and filtered as keys say, and
// leaves the terminal as it was.
func TestTopOnTerminal(t *testing.T) {
	t.Parallel()
	program := testserver.Build(t, "./cmd/boardd")
	server := testserver.Start(t, program, t.TempDir(), "--dev")
	c, err := client.New(client.Config{Addr: server.Addr, Token: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	person, tty := openTerminal(t, 150, 20)
	drawn := &screen{}
	go func() { _, _ = io.Copy(drawn, person) }() // until the program's end is closed
	cmd := exec.CommandContext(t.Context(), program, "top", "--interval", "500ms")
	cmd.Env = append(os.Environ(), "BOARDD_ADDR="+server.Addr, "BOARDD_TOKEN=dev")
	cmd.Stdin, cmd.Stdout = tty, tty
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close()
	shows := func(pattern string) {
		t.Helper()
		re := regexp.MustCompile(pattern)
		testserver.Eventually(t, pattern+" is drawn", func() bool { return re.MatchString(drawn.String()) })
	}
	press := func(keys string) {
		t.Helper()
		if _, err := person.WriteString(keys); err != nil {
			t.Fatal(err)
		}
	}
	shows(`default +0 +0 +0 +0 +0\.0 +0\.0 +0\.0 +0\.0 +0 +ok`)
	if _, err := c.Board("default").Post(t.Context(), &client.NewJob{Name: "new"}, &client.NewJob{Name: "new"}); err != nil {
		t.Fatal(err)
	}
	shows(`default +2 +0 +0 +0 +\d+s +[1-9]\d*\.\d +0\.0 `) // the rate with which they were posted
	press("s")
	shows(`1 of 1 boards  by ready`)
	press("r")
	shows(`by ready, turned around`)
	press("/nothing\r")
	shows(`0 of 1 boards .* /nothing  `)
	press("q")
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, drawn)
	}
	testserver.Eventually(t, "the terminal is left as it was", func() bool {
		text := drawn.String()
		return strings.HasPrefix(text, screenBegin) && strings.HasSuffix(text, screenEnd)
	})
}
