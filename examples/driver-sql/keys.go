package main

import (
	"database/sql"
	"encoding/json"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// Entry is what is kept under a key, and whether its job is on the board. Nothing is
// written to it when that job ends: it is looked up.
func (t *tx) Entry(name string) (e transition.Entry, onBoard bool, _ error) {
	t.row(func(rows *sql.Rows) error { return scanEntry(rows, &e) }, "SELECT entry FROM keys WHERE board = ? AND name = ?", t.board, name)
	if e.Job == (job.ID{}) { // nothing, or the count of a rate
		return e, false, nil
	}
	r := t.find(e.Job)
	return e, r != nil && (r.State == job.Unclaimed || r.State == job.Claimed), nil
}

func scanEntry(rows *sql.Rows, e *transition.Entry) error {
	var data []byte
	if err := rows.Scan(&data); err != nil {
		return err
	}
	return json.Unmarshal(data, e)
}

// take gives a job its keys. Twice as many others are looked at, from anywhere, and dropped
// if they say nothing any more: so those of ended jobs do not pile up.
func (t *tx) take(keys []driver.Key, id job.ID) {
	if len(keys) == 0 {
		return
	}
	for i := range keys {
		before, _, _ := t.Entry(keys[i].Name)
		t.exec("INSERT INTO keys (board, name, entry) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET entry = excluded.entry",
			t.board, keys[i].Name, inJSON(transition.Take(&keys[i], id, t.now, before)))
	}
	t.sweepKeys(2*len(keys), id)
}

// pace counts a claim in its rates.
func (t *tx) pace(rates []driver.Rate, id job.ID) {
	for i := range rates {
		name := transition.RateName(rates[i].Key)
		before, _, _ := t.Entry(name)
		t.exec("INSERT INTO keys (board, name, entry) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET entry = excluded.entry",
			t.board, name, inJSON(transition.Pace(&rates[i], t.now, before)))
	}
	if len(rates) > 0 {
		t.sweepKeys(2*len(rates), id)
	}
}

func (t *tx) sweepKeys(most int, id job.ID) {
	var names []string
	t.each(func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	}, "SELECT name FROM keys WHERE key >= abs(random()) % (SELECT max(key) + 1 FROM keys) AND board = ? ORDER BY key LIMIT ?", t.board, most)
	for _, name := range names {
		if e, onBoard, _ := t.Entry(name); e.Job != id && e.Dead(onBoard, t.now) {
			t.exec("DELETE FROM keys WHERE board = ? AND name = ?", t.board, name)
		}
	}
}
