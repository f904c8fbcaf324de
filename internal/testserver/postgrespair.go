package testserver

import (
	"os"
	"testing"
)

// PostgresPair is two PostgreSQLs, of which one is the primary and the other one its synchronous
// standby: what the primary acknowledges, the standby has. Its methods are called from one goroutine.
type PostgresPair struct {
	primary, standby *Postgres
}

// StartPostgresPair starts both, and stops them when the test ends. Their ports stay, whichever is
// the primary.
func StartPostgresPair(t testing.TB) *PostgresPair {
	t.Helper()
	first := StartPostgres(t, PostgresOptions{Config: []string{"wal_retrieve_retry_interval=100ms"}})
	p := &PostgresPair{primary: first, standby: first.Standby(t, nil)}
	p.synchronous()
	return p
}

// Primary returns the one that takes changes now.
func (p *PostgresPair) Primary() *Postgres { return p.primary }

// Standby returns the other one.
func (p *PostgresPair) Standby() *Postgres { return p.standby }

// FailOver kills the primary, and has the standby take its place. It acknowledges alone until
// Rejoin.
func (p *PostgresPair) FailOver() {
	p.primary.Kill()
	p.standby.Promote()
	p.primary, p.standby = p.standby, p.primary
}

// Rejoin makes who was the primary before FailOver the standby of the other one.
func (p *PostgresPair) Rejoin() {
	t := p.primary.t
	t.Helper()
	if err := os.RemoveAll(p.standby.Dir); err != nil {
		t.Fatal(err)
	}
	p.standby.copyOf(t, p.primary, p.primary.Addr)
	p.standby.Restart()
	p.synchronous()
}

// synchronous has the primary acknowledge nothing from now on that the standby lacks. The setting is
// on the primary alone: a standby that is promoted has nobody to wait for.
func (p *PostgresPair) synchronous() {
	p.primary.SQL("postgres", `ALTER SYSTEM SET synchronous_standby_names = 'standby'`)
	p.primary.SQL("postgres", `SELECT pg_reload_conf()`)
	p.CatchUp()
}

// CatchUp waits until the standby has all that can be seen on the primary. One that was killed and
// started again shows changes for which nobody waited any more.
func (p *PostgresPair) CatchUp() {
	t := p.primary.t
	t.Helper()
	now := p.primary.SQL("postgres", `SELECT pg_current_wal_insert_lsn()`)
	Eventually(t, "the standby is synchronous, and has all", func() bool {
		return p.primary.SQL("postgres", `SELECT sync_state = 'sync' AND flush_lsn >= '`+now[:len(now)-1]+`' FROM pg_stat_replication`) == "t\n"
	})
}
