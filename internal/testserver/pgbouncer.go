package testserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testneed"
)

// PgBouncer is a pool of connections in front of a PostgreSQL.
type PgBouncer struct {
	*process

	Addr string // 127.0.0.1:PORT
}

// StartPgBouncer starts one in a pool_mode ("transaction", "session", "statement"), with
// so many sessions for all who come, and stops it when the test ends.
func StartPgBouncer(t testing.TB, p *Postgres, mode string, sessions int) *PgBouncer {
	t.Helper()
	const program = "/usr/sbin/pgbouncer" // Debian does not put it into everybody's PATH
	if _, err := os.Stat(program); err != nil {
		testneed.Skip(t, "PgBouncer ("+program+") is not installed")
	}
	folder := folderForOthers(t)
	users, config := filepath.Join(folder, "users.txt"), filepath.Join(folder, "pgbouncer.ini")
	b := &PgBouncer{}
	b.process = newProcess(t, "pgbouncer", program, []string{"-q", config}, func() error { return isReady(p.programs, b.Addr) })
	b.owner = postgresOwner(t)
	startOn(t, b.process, func() {
		b.Addr = freeAddr(t)
		for path, text := range map[string]string{
			users: "\"postgres\" \"\"\n\"boardd\" \"\"\n",
			config: fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\nunix_socket_dir =\n"+
				"pool_mode = %s\ndefault_pool_size = %d\nmax_client_conn = 1000\nauth_type = trust\nauth_file = %s\n", port(p.Addr), port(b.Addr), mode, sessions, users),
		} {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // another user reads it
				t.Fatal(err)
			}
		}
	})
	return b
}

// URL is where clients find a database of the server behind it.
func (b *PgBouncer) URL(database string) string {
	return "postgres://postgres@" + b.Addr + "/" + database + "?sslmode=disable"
}

// isReady reports whether a PostgreSQL, or what stands in front of one, takes connections.
func isReady(programs, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, filepath.Join(programs, "pg_isready"), "-q", "-U", "postgres", "-d", "postgres", "-h", host, "-p", port).Run() //nolint:gosec // the test's own
}
