package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// documented returns the n-th block in a language after a heading of docs/operating.md.
func documented(t *testing.T, heading, language string, n int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testserver.Root(t), "docs", "operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "\n"+heading+"\n")
	blocks := regexp.MustCompile("(?s)\n```"+language+"\n(.*?)```").FindAllStringSubmatch(part, n)
	if len(blocks) < n {
		t.Fatalf("docs/operating.md has %d blocks of %s after %s, want %d", len(blocks), language, heading, n)
	}
	return blocks[n-1][1]
}

// replaced puts addresses of a test in place of documented ones, all of which have to be there.
func replaced(t *testing.T, text string, oldAndNew ...string) string {
	t.Helper()
	for i := 0; i < len(oldAndNew); i += 2 {
		if !strings.Contains(text, oldAndNew[i]) {
			t.Fatalf("there is no %s in\n%s", oldAndNew[i], text)
		}
	}
	return strings.NewReplacer(oldAndNew...).Replace(text)
}

// documentedFleet starts three servers on one Redis with the configuration of docs/operating.md.
func documentedFleet(t *testing.T) []*testserver.Server {
	t.Helper()
	program := withDriver(t, "redis")
	redis := testserver.StartRedis(t, testserver.RedisOptions{})
	text := documented(t, "## Several servers", "hcl", 1)
	var more strings.Builder
	fmt.Fprintf(&more, "hostnames = [\"boards.example.org\"]\ntoken \"root\" {\n  roles  = [\"operator\"]\n  secret = %q\n}\n", fleetToken)
	for i := range fleetBoards {
		fmt.Fprintf(&more, "board \"b%d\" {\n  backend = \"main\"\n}\n", i)
	}
	servers := make([]*testserver.Server, 3)
	for i := range servers {
		config := filepath.Join(t.TempDir(), "boards.hcl")
		s := testserver.New(t, program, "", "--config", config)
		its := replaced(t, text, "http://127.0.0.1:7422", s.Addr, `"127.0.0.1:7422"`, `"`+strings.TrimPrefix(s.Addr, "http://")+`"`, "127.0.0.1:6379", redis.Addr)
		if err := os.WriteFile(config, []byte(its+more.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Launch()
		servers[i] = s
	}
	settled(t, servers...)
	return servers
}

// TestFleetBalanced has nginx and HAProxy, with what docs/operating.md says, share out calls
// among three servers: jobs are posted, claimed, waited for and watched through them while one
// server is drained and another is killed, and no call fails.
func TestFleetBalanced(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"haproxy", "nginx"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := documentedFleet(t)
			var addrs []string
			for n, s := range servers {
				addrs = append(addrs, fmt.Sprintf("10.0.0.%d:7422", n+1), strings.TrimPrefix(s.Addr, "http://"))
			}
			proxy := testserver.StartBalancer(t, name, replaced(t, documented(t, "### Behind a proxy", "txt", i+1), addrs...))
			c, err := client.New(client.Config{Addr: proxy.Addr, Token: fleetToken, CAFile: proxy.Certs.CA})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			balanced(t, c, servers)
		})
	}
}

func balanced(t *testing.T, c *client.Client, servers []*testserver.Server) {
	t.Helper()
	board := c.Board("b3")
	owner, other := ownerOf(t, "b3", servers...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	seen, claimed := make(chan error, 1), make(chan error, 1)
	go func() {
		for e, err := range board.Watch(ctx, "") {
			if err != nil || e.GetType() == boarddv1.EventType_POSTED && e.GetJob().GetName() == "awaited" {
				seen <- err
				return
			}
		}
		seen <- ctx.Err()
	}()
	go func() {
		claims, err := board.Claim(ctx, client.ClaimOptions{Owner: "w", Names: []string{"awaited"}, Wait: time.Minute})
		if err == nil && len(claims) != 1 {
			err = fmt.Errorf("%d claims", len(claims))
		}
		if err == nil {
			err = board.Consume(ctx, claims...)
		}
		claimed <- err
	}()
	testserver.Eventually(t, "the claim waits at the board's server", func() bool {
		return strings.Contains(scrape(t, owner), `boardd_waiting_claims{board="b3",tenant="default"} 1`)
	})
	l := startLoad(t, board)
	l.more(10 * loadCallers)
	if _, err := fleetAdmin(t, other).DrainServer(ctx, &boarddv1.DrainServerRequest{Server: owner.Addr}); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "the board is another server's", func() bool {
		now, _ := ownerOf(t, "b3", other, owner, thirdOf(servers, owner, other))
		return now != owner
	})
	l.more(10 * loadCallers)
	if _, err := fleetAdmin(t, other).DrainServer(ctx, &boarddv1.DrainServerRequest{Server: owner.Addr, Undo: true}); err != nil {
		t.Fatal(err)
	}
	l.more(10 * loadCallers)
	next, _ := ownerOf(t, "b3", servers...)
	next.Kill()
	l.more(20 * loadCallers)
	if _, err := board.Post(ctx, &client.NewJob{Name: "awaited"}); err != nil {
		t.Errorf("post: %v", err)
	}
	if err := <-claimed; err != nil {
		t.Errorf("the claim that waited all the time: %v", err)
	}
	if err := <-seen; err != nil {
		t.Errorf("the watch: %v", err)
	}
	calls := l.end()
	testserver.Eventually(t, "every job is complete", func() bool {
		counts, err := board.Count(ctx)
		return err == nil && counts.GetUnclaimed()+counts.GetClaimed()+counts.GetTrashed() == 0 && counts.GetComplete() == calls/3+1
	})
}
