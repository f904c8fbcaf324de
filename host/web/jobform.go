package web

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// wrong is what is wrong with one field of a form, in the API's words.
type wrong struct{ Field, Text string }

// formView is a form of which one field may be wrong.
type formView struct {
	Fill    jobForm
	Delayed bool   // the form asks for the time before which the job may not be claimed
	Bad     *wrong // nil: nothing is, or what is wrong is of no field
	Problem string // that is of no field
}

// Wrong returns what is wrong with a field, nil if nothing is.
func (f *formView) Wrong(field string) *wrong {
	if f.Bad != nil && f.Bad.Field == field {
		return f.Bad
	}
	return nil
}

// The fields of forms, as the API calls them.
var (
	jobFields      = []string{"name", "details", "priority", "labels", "unique.key", "unique.window", "unique.onConflict", "notBefore", "timeout", "maxAttempts", "batch"}
	scheduleFields = []string{"schedule.name", "schedule.cron", "schedule.every", "schedule.timezone", "schedule.overlap", "schedule.catchUp", "schedule.jitter"}
)

// refuse puts an error to the field that it begins with.
func (f *formView) refuse(err error) {
	text := strings.TrimPrefix(plain(err), "schedule.job.")
	for _, field := range slices.Concat(jobFields, scheduleFields, hookFormFields) {
		rest, ok := strings.CutPrefix(text, field)
		if ok && rest != "" && strings.ContainsRune(". :", rune(rest[0])) {
			f.Bad = &wrong{Field: field, Text: strings.TrimPrefix(rest, ": ")}
			return
		}
	}
	if rest, ok := strings.CutPrefix(text, "unique: "); ok { // of the key as a whole
		f.Bad = &wrong{Field: "unique.key", Text: rest}
		return
	}
	f.Problem = text
}

// jobForm is a job as a form has it: text, which is shown again as it was written.
type jobForm struct {
	ID, Name, Details, Priority, Labels   string
	UniqueKey, UniqueWindow, OnConflict   string
	NotBefore, Zone, Timeout, MaxAttempts string
	Batch                                 string
	PriorityChoices, ConflictChoices      []string
}

// The choices of a form, the API's words in small letters. The first one of each is what
// holds where nothing is said, but for the priority.
var (
	priorityChoices = []string{"very_high", "high", "normal", "low", "very_low"}
	conflictChoices = []string{"keep", "replace", "reject"}
)

// emptyJobForm is a form for a new job. It has the job's uuid, so that a form that is sent
// twice posts once.
func emptyJobForm() jobForm {
	return jobForm{ID: newID().String(), Priority: "normal", OnConflict: "keep", PriorityChoices: priorityChoices, ConflictChoices: conflictChoices}
}

// newID returns a random uuid, of version 4.
func newID() job.ID {
	var id job.ID
	_, _ = rand.Read(id[:]) // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

func jobFormOf(f url.Values) jobForm {
	get := func(name string) string { return strings.TrimSpace(f.Get(name)) }
	return jobForm{
		ID: get("uuid"), Name: f.Get("name"), Details: f.Get("details"), Priority: get("priority"), Labels: f.Get("labels"),
		UniqueKey: f.Get("unique.key"), UniqueWindow: get("unique.window"), OnConflict: get("unique.onConflict"),
		NotBefore: get("notBefore"), Zone: get("zone"), Timeout: get("timeout"), MaxAttempts: get("maxAttempts"), Batch: f.Get("batch"),
		PriorityChoices: priorityChoices, ConflictChoices: conflictChoices,
	}
}

// posting reads the form. Its errors begin with the field that they are about, as those of
// the board do, which sees to the rest.
func (f *jobForm) posting() (p job.Posting, err error) {
	p = job.Posting{Name: f.Name, Batch: f.Batch}
	if strings.TrimSpace(f.Details) != "" {
		p.Details = []byte(f.Details)
	}
	var ok bool
	if p.Priority, ok = job.ParsePriority(strings.ToUpper(f.Priority)); !ok {
		return p, job.Errorf(job.Invalid, "priority: want one of %s", strings.Join(priorityChoices, ", "))
	}
	if p.Labels, err = f.labels(); err != nil {
		return p, err
	}
	if p.Unique, err = f.unique(); err != nil {
		return p, err
	}
	if p.NotBefore, err = localTime("notBefore", f.NotBefore, f.Zone); err != nil {
		return p, err
	}
	if p.Timeout, err = duration("timeout", f.Timeout); err != nil {
		return p, err
	}
	if f.MaxAttempts != "" {
		n, err := strconv.ParseInt(f.MaxAttempts, 10, 32)
		if err != nil {
			return p, job.Errorf(job.Invalid, "maxAttempts: want a whole number, or nothing for the board's own")
		}
		p.MaxAttempts = int32(n)
	}
	return p, nil
}

// labels reads a label from each line.
func (f *jobForm) labels() (list []job.Label, err error) {
	n := 0
	for line := range strings.Lines(f.Labels) {
		n++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, job.Errorf(job.Invalid, "labels: line %d: want KEY=VALUE", n)
		}
		list = append(list, job.Label{Key: strings.TrimSpace(key), Value: strings.TrimSpace(value)})
	}
	return list, nil
}

func (f *jobForm) unique() (u job.Unique, err error) {
	if u.Window, err = duration("unique.window", f.UniqueWindow); err != nil {
		return u, err
	}
	at := slices.Index(conflictChoices, f.OnConflict)
	if at < 0 {
		return u, job.Errorf(job.Invalid, "unique.onConflict: want one of %s", strings.Join(conflictChoices, ", "))
	}
	if f.UniqueKey == "" && u.Window == 0 {
		return u, nil // what becomes of a conflict that cannot be does not matter
	}
	u.Key, u.OnConflict = f.UniqueKey, job.OnConflict(at) //nolint:gosec // one of three
	return u, nil
}

// duration reads a time such as 5m; nothing is 0.
func duration(field, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, job.Errorf(job.Invalid, "%s: want a time such as 90s, 5m or 2h30m", field)
	}
	return d, nil
}

// localTime reads what a browser's field for a time has, as a clock in a zone shows it; nothing
// is no time. No zone is UTC.
func localTime(field, text, zone string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return time.Time{}, job.Errorf(job.Invalid, "%s: the time zone is not known: choose UTC at the foot of the page", field)
	}
	for _, form := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(form, text, at); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, job.Errorf(job.Invalid, "%s: want a time such as %s", field, fmt.Sprintf("%sT15:04", time.Now().Format(time.DateOnly)))
}
