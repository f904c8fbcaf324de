// Package store is the PostgreSQL driver's engine.
//
// A batch is one transaction. It locks the board's row, reads the facts, asks
// sdk/driver/transition for each op in turn, and writes what was planned with a few
// statements for all of them. That takes two trips to the server, of which the second
// ends with COMMIT. The board's row is the only lock, so no two batches wait for each
// other; and no row is updated by every batch, so that dead rows which PostgreSQL
// cannot remove yet are in nobody's way.
package store

import (
	"context"

	"github.com/boardd/boardd/sdk/driver"
)

// Program returns the driver.
func Program() driver.Program {
	return driver.Program{
		Info: driver.Info{
			Name:    "postgres",
			Version: "1.0.0",
			Summary: "Keeps boards in PostgreSQL, for several servers at once.",
			Config:  backendSchema,
			Board:   boardSchema,
			Wakes:   true,
		},
		Open:    func(ctx context.Context, c driver.Config) (driver.Driver, error) { return open(ctx, c) },
		Migrate: migrate,
	}
}

var backendSchema = driver.Schema{Fields: []driver.Field{
	{Name: "url", Type: driver.String, Secret: true, Doc: `where the database is, as "postgres://USER@HOST/DATABASE?sslmode=verify-full" or as libpq's "host=... dbname=..."; absent: as libpq finds it`},
	{Name: "schema", Type: driver.String, Doc: "the schema of the driver's tables; absent: boardd"},
	{Name: "max_connections", Type: driver.Integer, Doc: "at most so many connections to the database; absent: 16"},
	{Name: "migrate", Type: driver.String, Values: []string{migrateAuto, migrateCheck}, Doc: "whether the driver makes and upgrades its tables, or only checks them; absent: auto"},
}}

var boardSchema = driver.Schema{Fields: []driver.Field{
	{Name: "events", Type: driver.Integer, Doc: "how many changes are kept for watchers; absent: 8192"},
}}
