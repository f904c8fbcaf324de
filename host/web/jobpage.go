package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

type jobView struct {
	page
	Board  string
	Job    *job.Job
	Why    board.Explanation
	NotWhy string // why there is no explanation
	Stood  bool   // it was to be posted, and stood already
	Waits  bool   // nobody has the job, and somebody is to
	Labels string // the worker's that the explanation is for, as they were given
	Steps  []step
	Log    []job.LogEntry // the end of it
	LogCut bool           // there is more before it
	Batch  *board.Batch   // how the job's batch stands; nil: it has none, or that is not known
	Mates  string         // a link to the open jobs of the batch
	Tree   *node          // the details; nil: they are to be asked for
	May    may
}

// shownDetails is how large details are that are shown on the job's own page, in
// bytes. Larger ones have a page of their own.
const shownDetails = 16 << 10

// step is one thing that happened to a job.
type step struct {
	At   time.Time // zero: when is not known
	What string
	Text string
	Lost bool // an attempt that failed
}

func (u *UI) jobPage(w http.ResponseWriter, r *http.Request, v *visit) {
	name := r.PathValue("board")
	served, err := v.session.Describe(r.Context(), name, "GetJobs")
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	f, err := u.find(r, v, !served.Config.HideDetails)
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	b, j := f.board, f.job
	view := jobView{
		page: u.boardsPage(r, v, "Job "+j.Name, name), Board: name, Job: j, Labels: r.URL.Query().Get("labels"),
		Steps: steps(j), May: u.may(v, name), Waits: j.State == job.Unclaimed, Stood: r.URL.Query().Has("stood"),
	}
	if view.Live = livePath(name, f.cursor); len(j.Details) > 0 && len(j.Details) <= shownDetails {
		view.Tree = tree(j.Details)
	}
	if v.session.May("ExplainJob", name) {
		labels, err := workerLabels(view.Labels)
		if err == nil {
			view.Why, err = b.Explain(r.Context(), j.ID, "", labels)
		}
		if err != nil {
			view.NotWhy = plain(err)
		}
	}
	view.Mates = asked{Filter: "batch = " + quoted(j.Batch)}.link(name)
	if j.Batch != "" && v.session.May("GetBatch", name) {
		if stands, err := b.Batch(r.Context(), j.Batch, 0); err == nil {
			view.Batch = &stands
		}
	}
	if v.session.May("ReadLog", name) {
		if view.Log, view.LogCut, err = endOfLog(r.Context(), b, j.ID); err != nil {
			u.fail(w, r, v, err)
			return
		}
	}
	u.show(w, r, http.StatusOK, "job", view)
}

// shownLog is how many entries of a log a page shows.
const shownLog = 200

// endOfLog returns the last entries of a log, and whether there are more.
func endOfLog(ctx context.Context, b *board.Board, id job.ID) (entries []job.LogEntry, more bool, err error) {
	for last := int64(0); ; {
		page, err := b.ReadLog(ctx, id, last, 0, 0)
		if err != nil {
			return nil, false, err
		}
		if len(page.Entries) == 0 {
			return entries, more, nil
		}
		entries, last = append(entries, page.Entries...), page.Last
		if cut := len(entries) - shownLog; cut > 0 {
			entries, more = slices.Delete(entries, 0, cut), true
		}
	}
}

// found is a job that an address names.
type found struct {
	board  *board.Board
	cursor string // of a moment before the job was read
	job    *job.Job
}

func (u *UI) find(r *http.Request, v *visit, details bool) (found, error) {
	id, err := parseID(r.PathValue("uuid"))
	if err != nil {
		return found{}, err
	}
	var f found
	if f.board, err = v.session.Board(r.Context(), r.PathValue("board"), "GetJobs"); err != nil {
		return f, err
	}
	if f.cursor, err = present(r.Context(), f.board); err != nil {
		return f, err
	}
	results, err := f.board.Get(r.Context(), []job.ID{id}, board.GetOptions{Details: details, Operations: true})
	if err != nil {
		return f, err
	}
	f.job = results[0].Job
	return f, results[0].Err
}

func parseID(text string) (job.ID, error) {
	id, err := job.ParseID(text)
	if err != nil {
		return job.ID{}, &job.Error{Kind: job.Invalid, Message: err.Error()}
	}
	return id, nil
}

// workerLabels reads "key=value, key=value".
func workerLabels(text string) ([]job.Label, error) {
	var labels []job.Label
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		if !ok || key == "" {
			return nil, job.Errorf(job.Invalid, "the label %q: want KEY=VALUE, several with commas between them", part)
		}
		labels = append(labels, job.Label{Key: strings.TrimSpace(key), Value: strings.TrimSpace(value)})
	}
	slices.SortFunc(labels, func(a, b job.Label) int { return cmp.Compare(a.Key, b.Key) })
	for i := 1; i < len(labels); i++ {
		if labels[i].Key == labels[i-1].Key {
			return nil, job.Errorf(job.Invalid, "the label %q is given twice", labels[i].Key)
		}
	}
	return labels, nil
}

// steps tell the job's life in order, as far as the board remembers it.
func steps(j *job.Job) []step {
	list := []step{{At: j.CreatedAt, What: "posted"}}
	free := j.CreatedAt // since when it could be claimed, for all that is known
	for i := range j.Attempts {
		a := &j.Attempts[i]
		list = append(list, begun(a.Owner, a.Begun, a.Lease, free)...)
		lost := step{At: a.Ended, What: "lost or given back", Text: a.Reason, Lost: true}
		if !a.Begun.IsZero() && !a.Ended.IsZero() {
			lost.What += " after " + span(max(0, a.Ended.Sub(a.Begun)))
		}
		if lost.Text != "" {
			lost.What += ":"
		}
		list = append(list, lost)
		free = a.Ended
	}
	list = append(list, standing(j, free)...)
	if j.RestoredAt.IsZero() {
		return list
	}
	at := slices.IndexFunc(list, func(s step) bool { return s.At.After(j.RestoredAt) })
	if at < 0 {
		at = len(list)
	}
	return slices.Insert(list, at, step{At: j.RestoredAt, What: "put back from the trash", Text: "with its attempts counted anew"})
}

// standing tells how the job stands now.
func standing(j *job.Job, free time.Time) (list []step) {
	switch {
	case j.State == job.Claimed:
		list = begun(j.Owner, j.ClaimedAt, j.ClaimLease, free)
	case j.State == job.Trashed:
		list = append(list, step{At: j.EndedAt, What: "set aside", Text: j.LastReason})
	case j.State == job.Complete:
		if !j.ClaimedAt.IsZero() {
			list = begun(j.Owner, j.ClaimedAt, j.ClaimLease, free)
		}
		list = append(list, step{At: j.EndedAt, What: "ended: " + strings.ToLower(j.Outcome.String())})
	case !j.NotBefore.IsZero() && j.NotBefore.After(time.Now()):
		list = append(list, step{At: j.NotBefore, What: "may be claimed from then on"})
	}
	return list
}

// begun tells of a claim's begin, if anything is known of it.
func begun(owner string, at time.Time, lease time.Duration, free time.Time) []step {
	if owner == "" && at.IsZero() {
		return nil
	}
	s := step{At: at, What: "claimed"}
	if owner != "" {
		s.What += " by " + owner
	}
	if !at.IsZero() && !free.IsZero() {
		s.Text = "after waiting " + span(max(0, at.Sub(free)))
	}
	if lease > 0 {
		s.Text += " with a lease of " + span(lease)
	}
	return []step{s}
}

type detailsView struct {
	page
	Board string
	Job   *job.Job
	Tree  *node
	Raw   string // what the details are, where they are not JSON
}

// detailsPage shows what the poster wrote. It is a page of its own, so that it is
// loaded and seen only by who asks for it.
func (u *UI) detailsPage(w http.ResponseWriter, r *http.Request, v *visit) {
	f, err := u.find(r, v, true)
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	j := f.job
	view := detailsView{page: u.boardsPage(r, v, "Details of "+j.Name, r.PathValue("board")), Board: r.PathValue("board"), Job: j}
	switch {
	case j.RawDetails != nil:
		view.Raw = j.RawDetails.Encoding.String() + ", " + size(len(j.RawDetails.Data))
	case len(j.Details) == 0:
		view.Raw = "none are kept"
	default:
		view.Tree = tree(j.Details)
	}
	u.show(w, r, http.StatusOK, "details", view)
}
