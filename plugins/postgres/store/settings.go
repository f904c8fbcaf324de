package store

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// The values of the setting migrate.
const (
	migrateAuto  = "auto"
	migrateCheck = "check"
)

// Limits on settings.
const (
	defaultConnections = 16
	minConnections     = 3 // a batch, a reader, and the one that listens
	maxConnections     = 1000
	maxSchemaName      = 63
	defaultEvents      = 8192
)

// connectTimeout is for one address of a server.
const connectTimeout = 5 * time.Second

// settings are a backend's.
type settings struct {
	pool    *pgxpool.Config
	schema  string
	migrate string
}

func readSettings(raw []byte) (settings, error) {
	in := struct {
		URL            string `json:"url"`
		Schema         string `json:"schema"`
		MaxConnections int    `json:"max_connections"`
		Migrate        string `json:"migrate"`
	}{Schema: "boardd", MaxConnections: defaultConnections, Migrate: migrateAuto}
	if err := json.Unmarshal([]byte(cmp.Or(string(raw), "{}")), &in); err != nil {
		return settings{}, job.Errorf(job.Invalid, "the settings cannot be read: %v", err)
	}
	switch {
	case in.Schema == "" || len(in.Schema) > maxSchemaName || strings.ContainsFunc(in.Schema, notInSchema) || in.Schema[0] <= '9':
		return settings{}, job.Errorf(job.Invalid, "schema: want 1 to %d of [a-z0-9_], with no digit in front, got %q", maxSchemaName, in.Schema)
	case strings.HasPrefix(in.Schema, "pg_"):
		return settings{}, job.Errorf(job.Invalid, "schema: names that begin with pg_ are PostgreSQL's own, got %q", in.Schema)
	case in.MaxConnections < minConnections || in.MaxConnections > maxConnections:
		return settings{}, job.Errorf(job.Invalid, "max_connections: want %d to %d, got %d", minConnections, maxConnections, in.MaxConnections)
	case in.Migrate != migrateAuto && in.Migrate != migrateCheck:
		return settings{}, job.Errorf(job.Invalid, "migrate: want %q or %q, got %q", migrateAuto, migrateCheck, in.Migrate)
	}
	pool, err := readURL(in.URL)
	if err != nil {
		return settings{}, err
	}
	pool.MaxConns = int32(in.MaxConnections) - 1 //nolint:gosec // it is within bounds; one is for listening
	return settings{pool: pool, schema: in.Schema, migrate: in.Migrate}, nil
}

// readURL reads a connection string.
func readURL(at string) (*pgxpool.Config, error) {
	pool, err := pgxpool.ParseConfig(at)
	if err == nil {
		err = checkWords(at)
	}
	if _, ours := errors.AsType[*job.Error](err); ours {
		return nil, err
	}
	if err != nil { // the error hides the password
		return nil, job.Errorf(job.Invalid, `url: want "postgres://USER@HOST/DATABASE" or libpq's "host=... dbname=...": %v`, err)
	}
	switch pool.ConnConfig.DefaultQueryExecMode {
	case pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec:
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol: // they guess the types of arguments, and guess wrong
		return nil, job.Errorf(job.Invalid, `url: default_query_exec_mode: want "cache_describe" for a pool of connections that knows no prepared statements, or leave it out`)
	}
	pool.MinConns, pool.MaxConnIdleTime = 0, time.Minute
	c := pool.ConnConfig
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	c.DialFunc = dialer().DialContext
	c.ValidateConnect = takesChanges // of several hosts that one is used
	for name := range words {        // what is left of them says what is so anyhow
		delete(c.RuntimeParams, name)
	}
	c.RuntimeParams["application_name"] = cmp.Or(c.RuntimeParams["application_name"], c.RuntimeParams["fallback_application_name"], "boardd")
	delete(c.RuntimeParams, "fallback_application_name")
	return pool, nil
}

func notInSchema(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' }

// readBoardSettings returns how many changes a board keeps for its watchers.
func readBoardSettings(spec *driver.BoardSpec) (events int64, err error) {
	in := struct {
		Events int64 `json:"events"`
	}{defaultEvents}
	if err := json.Unmarshal([]byte(cmp.Or(string(spec.Settings), "{}")), &in); err != nil {
		return 0, job.Errorf(job.Invalid, "the settings of board %q cannot be read: %v", spec.Name, err)
	}
	if in.Events < 1 {
		return 0, job.Errorf(job.Invalid, "events: want at least 1, got %d", in.Events)
	}
	return in.Events, nil
}
