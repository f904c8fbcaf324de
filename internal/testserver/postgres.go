package testserver

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testneed"
)

// PostgresOptions say what sort of PostgreSQL a test needs. The zero value is one that
// flushes what it commits to the disk.
type PostgresOptions struct {
	Fast   bool     // no flushing: what is committed outlives the server's processes, but not the machine
	Config []string // more settings, such as "max_connections=20"
	Folder string   // where it keeps its files; empty: a new folder

	TLS   *Certificates // not nil: it speaks TLS, and takes certificates that CA has signed
	Rules string        // of pg_hba.conf, for whoever is not the superuser postgres; empty: all are let in
}

// Postgres is a PostgreSQL of its own, with a superuser postgres who needs no password.
type Postgres struct {
	*process

	Addr string // 127.0.0.1:PORT
	Dir  string // where it keeps its files

	programs string
	options  PostgresOptions
}

// StartPostgres starts a PostgreSQL and stops it when the test ends. Kill and Restart it
// as the test needs: its port and its files stay.
func StartPostgres(t testing.TB, o PostgresOptions) *Postgres {
	t.Helper()
	p := &Postgres{programs: postgresPrograms(t), Dir: filepath.Join(cmp.Or(o.Folder, folderForOthers(t)), "data"), options: o}
	owner := postgresOwner(t)
	giveTo(t, owner, filepath.Dir(p.Dir))
	p.fill(t, owner)
	p.secure(t, owner)
	p.begin(t, owner)
	return p
}

// giveTo makes files and folders a server's that runs as somebody else; nil: it does not.
func giveTo(t testing.TB, owner *syscall.Credential, paths ...string) {
	t.Helper()
	if owner == nil {
		return
	}
	for _, path := range paths {
		if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}

// secure writes who is let in, and the server's certificate, into its folder.
func (p *Postgres) secure(t testing.TB, owner *syscall.Credential) {
	t.Helper()
	files := map[string][]byte{}
	if p.options.Rules != "" {
		files["pg_hba.conf"] = []byte("host all postgres 127.0.0.1/32 trust\n" + p.options.Rules)
	}
	if c := p.options.TLS; c != nil {
		for name, path := range map[string]string{"root.crt": c.CA, "server.crt": c.ServerCert, "server.key": c.ServerKey} {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = text
		}
		p.options.Config = append(slices.Clone(p.options.Config), "ssl=on", "ssl_ca_file=root.crt")
	}
	for name, text := range files {
		path := filepath.Join(p.Dir, name)
		_ = os.Remove(path) // it may be another's to write
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		giveTo(t, owner, path)
	}
}

// begin starts the server on its files.
func (p *Postgres) begin(t testing.TB, owner *syscall.Credential) {
	t.Helper()
	p.process = newProcess(t, "postgres", filepath.Join(p.programs, "postgres"), nil, p.answers)
	p.owner = owner
	startOn(t, p.process, func() {
		p.Addr = freeAddr(t)
		p.args = postgresArgs(p, &p.options)
	})
}

// Standby starts a second server, which follows this one by streaming replication: through
// a proxy if there is one, so that it can be left behind.
func (p *Postgres) Standby(t testing.TB, through *Proxy) *Postgres {
	t.Helper()
	s := &Postgres{programs: p.programs, Dir: filepath.Join(folderForOthers(t), "data"), options: p.options}
	giveTo(t, p.owner, filepath.Dir(s.Dir))
	addr := p.Addr
	if through != nil {
		addr = through.Addr()
	}
	s.copyOf(t, p, addr)
	s.begin(t, p.owner)
	Eventually(t, "the standby follows", func() bool {
		return p.SQL("postgres", `SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'`) == "1\n"
	})
	return s
}

// copyOf makes the server's files those of another one's standby, which is reached at addr.
func (p *Postgres) copyOf(t testing.TB, other *Postgres, addr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	copying := exec.CommandContext(ctx, filepath.Join(p.programs, "pg_basebackup"), "-D", p.Dir, "-R", "-X", "stream", "-c", "fast", "-N", //nolint:gosec // the test's own
		"-d", "postgres://postgres@"+addr+"/?sslmode=disable&application_name=standby")
	as(copying, other.owner)
	if out, err := copying.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v\n%s", err, out)
	}
}

// Promote has a standby take changes from now on.
func (p *Postgres) Promote() {
	p.t.Helper()
	// A statement that waited for it could be what the standby waits for: rows that it sees go in what
	// is still to be replayed.
	if got := p.SQL("postgres", "SELECT pg_promote(false)"); got != "t\n" {
		p.t.Fatalf("the standby was not promoted: %s", got)
	}
	Eventually(p.t, "the standby takes changes", func() bool { return p.SQL("postgres", "SELECT pg_is_in_recovery()") == "f\n" })
}

// fill makes the server's files. What initdb made stays in .tools/postgres, for the next
// server: a copy is made in a tenth of the time.
func (p *Postgres) fill(t testing.TB, owner *syscall.Credential) {
	t.Helper()
	kept := filepath.Join(Root(t), ".tools", "postgres", filepath.Base(filepath.Dir(p.programs)))
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(owner *syscall.Credential, program string, args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), program, args...)
		as(c, owner)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", program, err, out)
		}
	}
	defer locked(t, kept+".lock")()
	if _, err := os.Stat(kept); err == nil {
		run(nil, "cp", "-a", kept, p.Dir)
		return
	}
	run(owner, filepath.Join(p.programs, "initdb"), "-D", p.Dir, "-U", "postgres", "-E", "UTF8",
		"--locale=C", "--auth=trust", "--no-sync")
	_ = os.RemoveAll(kept + ".new") // of a test that was killed; cp would tell
	run(nil, "cp", "-a", p.Dir, kept+".new")
	if err := os.Rename(kept+".new", kept); err != nil {
		t.Fatal(err)
	}
}

func postgresArgs(p *Postgres, o *PostgresOptions) []string {
	lines := []string{
		"listen_addresses=127.0.0.1", "port=" + port(p.Addr), "unix_socket_directories=", "max_connections=300",
		"shared_buffers=32MB", "log_min_messages=warning", "log_checkpoints=off",
	}
	if o.Fast {
		lines = append(lines, "fsync=off")
	}
	args := []string{"-D", p.Dir}
	for _, line := range append(lines, o.Config...) {
		args = append(args, "-c", line)
	}
	return args
}

// URL is where clients find a database; "postgres" is there from the start.
func (p *Postgres) URL(database string) string {
	return "postgres://postgres@" + p.Addr + "/" + database + "?sslmode=disable"
}

// SQL runs statements on a database as the superuser, and returns what they answer: a
// line a row, with | between columns.
func (p *Postgres) SQL(database, text string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	psql := exec.CommandContext(ctx, filepath.Join(p.programs, "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", p.URL(database), "-c", text)
	out, err := psql.CombinedOutput()
	if err != nil {
		p.t.Fatalf("psql: %v\n%s", err, out)
	}
	return string(out)
}

// Dump returns a schema of a database as SQL, with what its tables hold.
func (p *Postgres) Dump(database, schema string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(p.programs, "pg_dump"), "-n", schema, "-d", p.URL(database)).Output() //nolint:gosec // the test's own
	if err != nil {
		p.t.Fatalf("pg_dump: %v", err)
	}
	return string(out)
}

// Restore runs SQL, such as Dump returned, on a database in one transaction.
func (p *Postgres) Restore(database, dump string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	psql := exec.CommandContext(ctx, filepath.Join(p.programs, "psql"), "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-d", p.URL(database)) //nolint:gosec // likewise
	psql.Stdin = strings.NewReader(dump)
	if out, err := psql.CombinedOutput(); err != nil {
		p.t.Fatalf("psql: %v\n%s", err, out)
	}
}

// Tell is SQL for a server that may be away, standing still, or about to end: each
// statement is a transaction of its own.
func (p *Postgres) Tell(statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	args := []string{"-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", p.URL("postgres") + "&connect_timeout=2"}
	for _, text := range statements {
		args = append(args, "-c", text)
	}
	return exec.CommandContext(ctx, filepath.Join(p.programs, "psql"), args...).Run() //nolint:gosec // the test's own
}

// Pause stops all processes of the server with SIGSTOP: the first one first, so that it
// starts no more.
func (p *Postgres) Pause() { p.signal(syscall.SIGSTOP) }

// Resume lets a server go on that Pause has stopped.
func (p *Postgres) Resume() { p.signal(syscall.SIGCONT) }

func (p *Postgres) signal(s syscall.Signal) {
	for _, pid := range append([]int{p.PID()}, childrenOf(p.PID())...) {
		_ = syscall.Kill(pid, s) // it may have ended
	}
}

// Crash kills one of the server's processes but the first, which then ends all others and
// recovers. choose returns a number below its argument.
func (p *Postgres) Crash(choose func(int) int) {
	if children := childrenOf(p.PID()); len(children) > 0 {
		_ = syscall.Kill(children[choose(len(children))], syscall.SIGKILL) // it may have ended
	}
}

// CPU returns how much processor time the server's processes have used, of those that are there.
func (p *Postgres) CPU() time.Duration {
	total := CPUOf(p.PID())
	for _, pid := range childrenOf(p.PID()) {
		total += CPUOf(pid)
	}
	return total
}

// answers reports whether the server takes connections.
func (p *Postgres) answers() error { return isReady(p.programs, p.Addr) }

// Kill ends all processes of the server with SIGKILL, and waits for their end: while one
// is there, the server cannot start again.
func (p *Postgres) Kill() {
	if p.ended == nil {
		return
	}
	p.halt()
	children := childrenOf(p.PID())
	p.process.Kill()
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL) // they may have ended by themselves
	}
	Eventually(p.t, "PostgreSQL's processes have ended", func() bool {
		return !slices.ContainsFunc(children, func(pid int) bool {
			fields := stat(pid)
			return len(fields) > 0 && fields[0] != "Z" // whoever inherits one may take a while to bury it
		})
	})
}

// halt stops the server's first process, so that it starts none while they are looked for.
func (p *Postgres) halt() {
	_ = p.command.Process.Signal(syscall.SIGSTOP) // of one that has ended it is refused
	Eventually(p.t, "PostgreSQL's first process stands still", func() bool {
		fields := stat(p.PID())
		return len(fields) == 0 || fields[0] == "T" || fields[0] == "Z"
	})
}

// childrenOf returns the processes that a process has started.
func childrenOf(parent int) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if fields := stat(pid); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// postgresPrograms returns the folder of PostgreSQL's programs, which Debian does not put
// into PATH. Of several versions it is the newest.
func postgresPrograms(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // the others are beside the program itself
			return filepath.Dir(path)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		testneed.Skip(t, "PostgreSQL's programs (initdb, postgres) are not installed")
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return postgresVersion(a) - postgresVersion(b) })
	return filepath.Dir(newest)
}

func postgresVersion(initdb string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb)))) // 0 is older than any
	return n
}

// postgresOwner returns whom the server has to run as: it refuses to run as root.
func postgresOwner(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32) // on every system that has them they are numbers
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	testneed.Skip(t, "PostgreSQL does not run as root, and there is no user postgres or nobody")
	return nil
}

// folderForOthers makes a folder that another user can reach.
func folderForOthers(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	for _, path := range []string{folder, filepath.Dir(folder)} {
		if err := os.Chmod(path, 0o711); err != nil { //nolint:gosec // it holds nothing secret
			t.Fatal(err)
		}
	}
	return folder
}

// as has a program run as another user; nil: as this one.
func as(command *exec.Cmd, owner *syscall.Credential) {
	if owner == nil {
		return
	}
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Credential = owner
	command.Dir = "/"
}
