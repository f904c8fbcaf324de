package bench

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// BenchmarkPostBySQL is how long a job that is posted by boardd.post, in a transaction of
// psql's, waits for a worker: from the answer to the commit until a claim that waits for it is
// answered, on a server that does nothing else. -benchtime 1000x makes 1,000 jobs.
func BenchmarkPostBySQL(b *testing.B) {
	boardd := program(b)
	withPlugin(b, boardd, "postgres")
	postgres := testserver.StartPostgres(b, testserver.PostgresOptions{})
	config := testserver.CatalogConfig(b, "postgres", fmt.Sprintf("url = %q", postgres.URL("postgres")), "board \"b\" {\n  backend = \"main\"\n}\n")
	server := testserver.Start(b, boardd, "", "--config", config)
	board := dialWith(b, client.Config{Addr: server.Addr}).Board("b")
	say := psql(b, postgres.URL("postgres"))
	say("SELECT 'ready';")
	took := make([]time.Duration, 0, b.N)
	for b.Loop() {
		claimed := make(chan time.Time, 1)
		waiting := make(chan struct{})
		go func() {
			close(waiting)
			claims, err := board.Claim(b.Context(), client.ClaimOptions{Owner: owner, Wait: 30 * time.Second})
			claimed <- time.Now()
			if err == nil && len(claims) == 1 {
				err = board.Consume(b.Context(), claims...)
			}
			if err != nil || len(claims) != 1 {
				b.Errorf("%d claims, %v", len(claims), err)
			}
			claimed <- time.Now()
		}()
		<-waiting
		time.Sleep(5 * time.Millisecond) // the claim is on its way, and then it waits
		say("BEGIN; SELECT boardd.post(board => 'default/b', name => 'posted'); COMMIT;")
		committed := time.Now()
		took = append(took, max(0, (<-claimed).Sub(committed)))
		<-claimed
		if b.Failed() {
			b.FailNow()
		}
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1e3, "ms-median")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1e3, "ms-p99")
	b.ReportMetric(took[len(took)-1].Seconds()*1e3, "ms-most")
	b.ReportMetric(0, "ns/op")
}

// psql starts a session, and returns what runs a line of statements, of which one answers a row.
func psql(b *testing.B, url string) func(line string) {
	b.Helper()
	session := exec.CommandContext(b.Context(), testneed.Program(b, "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url)
	in, err := session.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := session.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := session.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = session.Wait()
	})
	answers := bufio.NewReader(out)
	return func(line string) {
		b.Helper()
		if _, err := io.WriteString(in, line+" SELECT 'said';\n"); err != nil {
			b.Fatal(err)
		}
		for {
			answer, err := answers.ReadString('\n')
			if err != nil {
				b.Fatal(err)
			}
			if answer == "said\n" {
				return
			}
		}
	}
}
