// Command sql-post writes an order, and posts the job that goes with it in the same
// transaction of PostgreSQL: both or none.
//
//	sql-post DATABASE-URL ORDER
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sql-post DATABASE-URL ORDER")
		os.Exit(2)
	}
	db, err := sql.Open("pgx", os.Args[1])
	if err == nil {
		var job string
		if job, err = order(context.Background(), db, os.Args[2]); err == nil {
			fmt.Println(job)
		}
		_ = db.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sql-post:", err)
		os.Exit(1)
	}
}

// order writes an order, and returns the uuid of its job.
func order(ctx context.Context, db *sql.DB, id string) (job string, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = tx.Rollback() }() // does nothing once it is committed
	if _, err := tx.ExecContext(ctx, `INSERT INTO orders (id, total) VALUES ($1, 99.90)`, id); err != nil {
		return "", err
	}
	err = tx.QueryRowContext(ctx, `SELECT boardd.post(board => 'default', name => 'invoice',
		details => jsonb_build_object('order', $1::bigint), priority => 'HIGH')`, id).Scan(&job)
	if err != nil {
		return "", err
	}
	return job, tx.Commit()
}
