package auditor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// Query asks for records.
type Query struct {
	Tenant       string // whose
	All          bool   // of every tenant, and of none
	After        uint64 // a record's number; without All, a Next
	Max          int
	Routine      bool   // Recent: also what posters and workers do all day, where it was let
	About        string // Recent: only records whose call, board, name, caller or result holds this text; empty: all
	Since, Until time.Time
}

// Limits on Query.
const (
	MaxPage     = 1000 // records of one call
	defaultPage = 100
	maxScan     = 200_000 // records that one call looks at
)

// Page is a part of this host's audit log.
type Page struct {
	Records []audit.Record
	Flaws   []audit.Flaw  // with All: lines among these records that cannot be read
	Next    uint64        // where to go on; 0: that was all
	Head    *catalog.Head // with All: what was last published of this host's log, and the key that it is signed with
}

// Page returns records of this host, oldest first. Without All they are without
// their places in the chain, and Next is a number that only this host can read: a
// tenant does not learn from them how much others do.
func (a *Auditor) Page(ctx context.Context, q Query) (Page, error) {
	var page Page
	if q.Max < 0 || q.Max > MaxPage {
		return page, job.Errorf(job.Invalid, "max: want 1 to %d, or 0 for %d, got %d", MaxPage, defaultPage, q.Max)
	}
	if q.Max == 0 {
		q.Max = defaultPage
	}
	log, err := a.reading()
	if err != nil {
		return page, err
	}
	if c := a.options.Catalog(); c != nil && q.All {
		if head, ok, err := c.Head(ctx, a.options.Host); err == nil && ok {
			page.Head = &head
		}
	}
	if page.Head == nil && q.All { // nothing was published, and the key is known all the same
		page.Head = &catalog.Head{Host: a.options.Host}
	}
	if q.All {
		page.Head.Key = a.key.Public().String()
	}
	hidden := a.hidden(q.All)
	looked, last := 0, log.Head().Sequence // what is after it may be only partly written
	page.Flaws, err = log.Read(hidden.read(q.After), func(r *audit.Record) bool {
		looked++
		if r.Sequence > last || ctx.Err() != nil {
			return false
		}
		if len(page.Records) == q.Max || looked > maxScan {
			page.Next = hidden.write(r.Sequence - 1)
			return false
		}
		if (q.All || r.Tenant == q.Tenant) && !r.At.Before(q.Since) && (q.Until.IsZero() || r.At.Before(q.Until)) {
			page.Records = append(page.Records, hidden.record(r))
		}
		return true
	})
	if !q.All {
		page.Flaws = nil
	}
	return page, errors.Join(err, ctx.Err())
}

// reading returns the log for somebody who wants to see it.
func (a *Auditor) reading() (*audit.Log, error) {
	if a == nil {
		return nil, job.Errorf(job.Precondition, "this server keeps no audit log: set data_dir in its configuration")
	}
	return a.opened()
}

// maxRecentScan is how many records back Recent looks at once.
const maxRecentScan = 20_000

// wants reports whether a record is one of those that Recent is asked for.
func (q *Query) wants(r *audit.Record) bool {
	if !q.Routine && r.Result == "ok" && r.CallerTenant == r.Tenant && tenant.Routine(r.Call) {
		return false
	}
	holds := func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(q.About)) }
	return q.About == "" || slices.ContainsFunc([]string{r.Call, r.Board, r.Name, r.Caller, r.Result}, holds)
}

// Recent returns records of this host before a sequence number (0: the last
// ones), newest first, and before which one to go on; 0: there are no more. Where
// the tenant has few among many, a page may have none and still not be the last. What
// a tenant does not learn is as with Page.
func (a *Auditor) Recent(ctx context.Context, q Query, before uint64) ([]audit.Record, uint64, error) {
	if q.Max < 1 || q.Max > MaxPage {
		return nil, 0, job.Errorf(job.Invalid, "max: want 1 to %d, got %d", MaxPage, q.Max)
	}
	log, err := a.reading()
	if err != nil {
		return nil, 0, err
	}
	start, err := audit.First(log.Folder)
	if err != nil {
		return nil, 0, err
	}
	hidden := a.hidden(q.All)
	end := log.Head().Sequence
	if before > 0 {
		end = min(end, max(hidden.read(before), 1)-1)
	}
	from := end - min(end, maxRecentScan)
	var records []audit.Record
	_, err = log.Read(from, func(r *audit.Record) bool {
		if r.Sequence > end || ctx.Err() != nil {
			return false
		}
		if (q.All || r.Tenant == q.Tenant) && q.wants(r) {
			if records = append(records, *r); len(records) >= 2*q.Max {
				records = append(records[:0], records[len(records)-q.Max:]...)
			}
		}
		return true
	})
	if over := len(records) - q.Max; over > 0 {
		records = records[over:]
	}
	next := from + 1
	if len(records) == q.Max {
		next = records[0].Sequence
	}
	if next <= start.Sequence+1 {
		next = 0
	} else {
		next = hidden.write(next)
	}
	slices.Reverse(records)
	for i := range records {
		records[i] = hidden.record(&records[i])
	}
	return records, next, err
}
