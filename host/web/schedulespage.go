package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// How many schedules a page shows, and how many of the next times of each.
const (
	pageSchedules = 50
	shownTicks    = 10
)

// scheduleCard is one schedule.
type scheduleCard struct {
	board.Schedule

	Next []string // the next times, in the schedule's own zone
}

type schedulesView struct {
	page
	formView

	Board     string
	Schedules []scheduleCard
	More      string // a link
	May       maySchedule
	Schedule  scheduleForm
	Overlaps  []string
}

// maySchedule says which changes the visitor's roles allow.
type maySchedule struct{ Put, Pause, Resume, Trigger, Delete bool }

// scheduleForm is a schedule as a form has it, without its job.
type scheduleForm struct {
	Name, Cron, Every, Timezone, Overlap, CatchUp, Jitter string
}

var overlapChoices = []string{"allow", "skip", "cancel"}

func (u *UI) schedulesPage(w http.ResponseWriter, r *http.Request, v *visit) {
	u.showSchedules(w, r, v, http.StatusOK, formView{Fill: emptyJobForm()}, scheduleForm{Overlap: "allow"})
}

func (u *UI) showSchedules(w http.ResponseWriter, r *http.Request, v *visit, status int, form formView, schedule scheduleForm) {
	name := r.PathValue("board")
	b, err := v.session.Board(r.Context(), name, "ListSchedules")
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	may := func(call string) bool { return v.session.May(call, name) }
	view := &schedulesView{
		page: u.boardsPage(r, v, "Schedules of "+name, name), formView: form, Board: name, Schedule: schedule, Overlaps: overlapChoices,
		May: maySchedule{may("PutSchedule"), may("PauseSchedule"), may("ResumeSchedule"), may("TriggerSchedule"), may("DeleteSchedule")},
	}
	view.Poll, view.Path = overviewPoll, "/ui/boards/"+url.PathEscape(name)+"/schedules"
	list, err := b.Schedules(r.Context(), r.URL.Query().Get("after"), pageSchedules)
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	for i := range list {
		view.Schedules = append(view.Schedules, scheduleCard{Schedule: list[i], Next: nextTicks(&list[i])})
	}
	if len(list) == pageSchedules {
		view.More = view.Path + "?" + url.Values{"after": {list[len(list)-1].Name}}.Encode()
	}
	u.show(w, r, status, "schedules", view)
}

// nextTicks returns the next times of a schedule as a clock in its zone shows them.
func nextTicks(s *board.Schedule) (list []string) {
	zone, err := time.LoadLocation(s.Timezone)
	if err != nil {
		zone = time.UTC
	}
	for _, t := range s.Ticks(shownTicks) {
		list = append(list, t.In(zone).Format("Mon 2006-01-02 15:04:05 MST"))
	}
	return list
}

// putSchedule makes the schedule that the form says; or shows the form again, with what is
// wrong where it is.
func (u *UI) putSchedule(w http.ResponseWriter, r *http.Request, v *visit) {
	name := r.PathValue("board")
	get := func(field string) string { return strings.TrimSpace(r.PostForm.Get(field)) }
	given := scheduleForm{
		Name: get("schedule.name"), Cron: get("schedule.cron"), Every: get("schedule.every"), Timezone: get("schedule.timezone"),
		Overlap: get("schedule.overlap"), CatchUp: get("schedule.catchUp"), Jitter: get("schedule.jitter"),
	}
	deed := admin.Deed{Call: "PutSchedule", Board: name, Name: given.Name, Remote: r.RemoteAddr}
	b, err := v.session.Board(r.Context(), name, deed.Call)
	if err != nil {
		u.fail(w, r, v, errors.Join(err, v.session.Did(deed, err)))
		return
	}
	form := formView{Fill: jobFormOf(r.PostForm)}
	schedule, err := given.schedule(&form.Fill)
	if err == nil {
		none := uint64(0)
		if _, err = b.PutSchedule(r.Context(), schedule, &none); errors.Is(err, job.Aborted) {
			err = job.Errorf(job.Aborted, "schedule.name: there is a schedule of this name: delete it first, or change it with boardd schedule put")
		}
	}
	if failed := v.session.Did(deed, err); failed != nil {
		u.fail(w, r, v, errors.Join(err, failed))
		return
	}
	if err != nil {
		form.refuse(err)
		u.showSchedules(w, r, v, statusOf(err), form, given)
		return
	}
	http.Redirect(w, r, "/ui/boards/"+url.PathEscape(name)+"/schedules", http.StatusSeeOther)
}

// schedule reads the form. Its errors begin with the field that they are about.
func (f *scheduleForm) schedule(of *jobForm) (s board.Schedule, err error) {
	s = board.Schedule{Name: f.Name, Cron: f.Cron, Timezone: f.Timezone}
	at := slices.Index(overlapChoices, f.Overlap)
	if at < 0 {
		return s, job.Errorf(job.Invalid, "schedule.overlap: want one of %s", strings.Join(overlapChoices, ", "))
	}
	s.Overlap = board.Overlap(at) //nolint:gosec // one of three
	for _, d := range []struct {
		field, text string
		to          *time.Duration
	}{{"schedule.every", f.Every, &s.Every}, {"schedule.catchUp", f.CatchUp, &s.CatchUp}, {"schedule.jitter", f.Jitter, &s.Jitter}} {
		if *d.to, err = duration(d.field, d.text); err != nil {
			return s, err
		}
	}
	if s.Cron == "" && s.Every == 0 {
		return s, job.Errorf(job.Invalid, "schedule.cron: want either this or an interval")
	}
	s.Job, err = of.posting()
	return s, err
}

// scheduleChanges are what can be done to a schedule, by the last part of the path.
var scheduleChanges = map[string]struct {
	call string
	asks string // what is asked first; "": nothing
	do   func(ctx context.Context, b *board.Board, name string) (posted *job.Job, err error)
}{
	"pause": {call: "PauseSchedule", do: func(ctx context.Context, b *board.Board, name string) (*job.Job, error) {
		_, err := b.PauseSchedule(ctx, name, true)
		return nil, err
	}},
	"resume": {call: "ResumeSchedule", do: func(ctx context.Context, b *board.Board, name string) (*job.Job, error) {
		_, err := b.PauseSchedule(ctx, name, false)
		return nil, err
	}},
	"trigger": {call: "TriggerSchedule", do: func(ctx context.Context, b *board.Board, name string) (*job.Job, error) {
		return b.TriggerSchedule(ctx, name, job.ID{})
	}},
	"delete": {call: "DeleteSchedule", asks: "Delete this schedule? The jobs that it has posted stay.", do: func(ctx context.Context, b *board.Board, name string) (*job.Job, error) {
		return nil, b.DeleteSchedule(ctx, name)
	}},
}

// changeSchedule does something to a schedule, and shows the schedules, or the job that was
// posted.
func (u *UI) changeSchedule(w http.ResponseWriter, r *http.Request, v *visit) {
	name, schedule := r.PathValue("board"), r.PostForm.Get("schedule")
	change, ok := scheduleChanges[r.PathValue("change")]
	if !ok {
		u.fail(w, r, v, errNoPage)
		return
	}
	deed := admin.Deed{Call: change.call, Board: name, Name: schedule, Remote: r.RemoteAddr}
	of := "/ui/boards/" + url.PathEscape(name)
	b, err := v.session.Board(r.Context(), name, change.call)
	if err == nil && change.asks != "" && !meant(r) {
		u.ask(w, r, question{
			page: u.page(r, v, "Delete the schedule "+schedule), Asks: change.asks, Verb: "Delete", Grave: true,
			Action: of + "/schedules/" + r.PathValue("change"), Fields: []field{{"schedule", schedule}}, Back: of + "/schedules",
		})
		return
	}
	var posted *job.Job
	if err == nil {
		posted, err = change.do(r.Context(), b, schedule)
	}
	if err = errors.Join(err, v.session.Did(deed, err)); err != nil {
		u.fail(w, r, v, err)
		return
	}
	to := of + "/schedules"
	if posted != nil {
		to = of + "/jobs/" + posted.ID.String()
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}
