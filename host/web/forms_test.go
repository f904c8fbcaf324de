package web_test

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

const someUUID = "6f1f4a52-93a5-4d5c-8f0e-1d2b3c4d5e6f"

// jobForm is a form of a job, with what differs from one that may be posted.
func jobForm(more ...string) url.Values {
	f := url.Values{"uuid": {someUUID}, "name": {"by-hand"}, "priority": {"normal"}, "unique.onConflict": {"keep"}}
	for i := 0; i < len(more); i += 2 {
		f.Set(more[i], more[i+1])
	}
	return f
}

// TestPostFromPage posts a job with everything that the form has, once however often it is
// sent.
func TestPostFromPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	b := s.signedIn(t, adminSecret)
	_, text := b.get("/ui/boards/jobs/post")
	if m := regexp.MustCompile(`name="uuid" value="([^"]+)"`).FindStringSubmatch(text); m == nil || strings.Count(text, `name="uuid"`) != 1 {
		t.Fatalf("the form has no uuid:\n%s", text)
	} else if _, err := job.ParseID(m[1]); err != nil {
		t.Fatal(err)
	}
	form := jobForm("priority", "high", "labels", "customer=acme\n\nnote=a, b=c\n", "details", `{"path":"/a.png"}`, "timeout", "5m", "maxAttempts", "3",
		"unique.key", "k", "unique.window", "24h", "unique.onConflict", "reject", "notBefore", "2040-07-01T12:30", "zone", "Europe/Berlin")
	for range 2 {
		b.sends("/ui/boards/jobs/post", form, http.StatusOK, "by-hand", someUUID, "delayed")
	}
	id, _ := job.ParseID(someUUID)
	results, err := jobs.Get(t.Context(), []job.ID{id}, board.GetOptions{Details: true})
	if err != nil || results[0].Err != nil {
		t.Fatal(err, results[0].Err)
	}
	j := results[0].Job
	if j.Priority != job.High || j.Timeout != 5*time.Minute || j.MaxAttempts != 3 || j.Unique.Key != "k" || j.Unique.Window != 24*time.Hour ||
		string(j.Details) != `{"path":"/a.png"}` || !j.NotBefore.Equal(time.Date(2040, 7, 1, 10, 30, 0, 0, time.UTC)) ||
		len(j.Labels) != 2 || j.Labels[1] != (job.Label{Key: "note", Value: "a, b=c"}) {
		t.Errorf("the job is %+v", j)
	}
	if counts, err := jobs.Count(t.Context()); err != nil || counts.Delayed != 1 || counts.Ready != 0 {
		t.Errorf("%+v, %v", counts, err)
	}
	b.sends("/ui/boards/jobs/post", jobForm("uuid", "6f1f4a52-93a5-4d5c-8f0e-1d2b3c4d5e70", "unique.key", "k"), http.StatusOK, "has the unique key already", someUUID)
}

// TestWrongFields has what is wrong with a form said at its field, and what was written kept.
func TestWrongFields(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	b := s.signedIn(t, adminSecret)
	post, schedule := "/ui/boards/jobs/post", "/ui/boards/jobs/schedules"
	at := func(path, field, words string, status int, form url.Values) {
		t.Helper()
		text := b.sends(path, form, status, `id="`+field+`-wrong"`, words, `value="by-hand"`)
		if strings.Count(text, `-wrong" role="alert"`) != 1 || strings.Count(text, `aria-invalid="true" aria-describedby="`+field+`-wrong"`) != 1 {
			t.Errorf("%s: not one field is wrong:\n%s", field, text)
		}
	}
	for _, test := range []struct{ field, text, words string }{
		{"details", "[1]", "want a JSON object"},
		{"details", `{"a":}`, "at byte"},
		{"priority", "urgent", "want one of"},
		{"labels", "nonsense", "line 1: want KEY=VALUE"},
		{"labels", "a=1\na=2", "there twice"},
		{"timeout", "soon", "want a time such as"},
		{"timeout", "1ns", "want"},
		{"maxAttempts", "many", "want a whole number"},
		{"maxAttempts", "-1", "want 0"},
		{"unique.key", strings.Repeat("k", 300), "at most 255"},
		{"unique.window", "1h", ""},
		{"unique.onConflict", "fight", "want one of"},
		{"notBefore", "tomorrow", "want a time such as"},
		{"notBefore", "9999-01-01T00:00", "days ahead"},
	} {
		field := test.field
		if field == "unique.window" {
			field = "unique.key" // of which there is none
		}
		at(post, field, test.words, http.StatusBadRequest, jobForm(test.field, test.text))
	}
	at(post, "notBefore", "zone is not known", http.StatusBadRequest, jobForm("notBefore", "2040-01-01T00:00", "zone", "Local"))
	b.sends(post, jobForm("uuid", "nonsense"), http.StatusBadRequest, `class="problem"`)
	b.sends(post, jobForm("name", ""), http.StatusBadRequest, `id="name-wrong"`)
	if counts, err := jobs.Count(t.Context()); err != nil || counts.Ready+counts.Delayed != 0 {
		t.Errorf("%+v, %v", counts, err)
	}
	for _, test := range []struct{ field, text, words string }{
		{"schedule.cron", "often", "want five fields"},
		{"schedule.cron", "", "want either"},
		{"schedule.timezone", "Berlin", "IANA"},
		{"schedule.every", "1h", ""},
		{"schedule.overlap", "fight", "want one of"},
		{"schedule.catchUp", "1ms", "want"},
		{"schedule.jitter", "-1s", "want"},
		{"details", "[1]", "want a JSON object"},
	} {
		form := scheduleForm("nightly", test.field, test.text)
		if test.field == "schedule.every" {
			if text := b.sends(schedule, form, http.StatusBadRequest, "want either cron or every"); !strings.Contains(text, "<details class=\"panel make\" open>") {
				t.Errorf("the form is closed:\n%s", text)
			}
			continue
		}
		at(schedule, test.field, test.words, http.StatusBadRequest, form)
	}
	if list, err := jobs.Schedules(t.Context(), "", 10); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// scheduleForm is a form of a schedule.
func scheduleForm(name string, more ...string) url.Values {
	return jobForm(append([]string{"schedule.name", name, "schedule.cron", "0 3 * * *", "schedule.timezone", "Europe/Berlin", "schedule.overlap", "skip"}, more...)...)
}

// TestSchedulesPage makes a schedule, pauses it, lets it go on, posts its job and deletes it.
func TestSchedulesPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	b := s.signedIn(t, adminSecret)
	const path = "/ui/boards/jobs/schedules"
	b.wants(path, "has no schedules", "Make a schedule")
	text := b.sends(path, scheduleForm("nightly <b>", "labels", "of=night", "schedule.catchUp", "1h"), http.StatusOK, "nightly &lt;b&gt;", "by-hand", "of=night", "03:00:00 CE", "1h late")
	if n := strings.Count(text, ":00 CE"); n != 10 {
		t.Errorf("%d next times are shown:\n%s", n, text)
	}
	b.sends(path, scheduleForm("nightly <b>"), http.StatusConflict, `id="schedule.name-wrong"`, "there is a schedule of this name")
	b.sends(path, scheduleForm("often", "schedule.cron", "", "schedule.timezone", "", "schedule.every", "5m"), http.StatusOK, "every 5m<")
	of := url.Values{"schedule": {"nightly <b>"}}
	b.sends(path+"/pause", of, http.StatusOK, ">paused<", "Resume")
	b.sends(path+"/resume", of, http.StatusOK, "Pause nightly")
	b.sends(path+"/trigger", of, http.StatusOK, "What happened", "by-hand")
	b.wants(path, "Last posted", "/ui/boards/jobs/jobs/")
	b.sends(path+"/delete", of, http.StatusOK, "Delete this schedule?")
	of.Set("confirmed", "yes")
	if text := b.sends(path+"/delete", of, http.StatusOK, "often"); strings.Contains(text, "nightly") {
		t.Errorf("it is still there:\n%s", text)
	}
	b.sends(path+"/explode", of, http.StatusNotFound)
	b.sends(path+"/pause", of, http.StatusNotFound, "there is no schedule")
	jobs.SetSchedules([]board.Schedule{{Name: "declared", Every: time.Hour, Job: job.Posting{Name: "x"}}})
	until(t, "the declared schedule is there", func() bool { _, text := b.get(path); return strings.Contains(text, "declared") })
	if _, text := b.get(path); !strings.Contains(text, "by the configuration") || strings.Contains(text, "Delete declared") || !strings.Contains(text, "Pause declared") {
		t.Errorf("a declared schedule can be deleted, or not paused:\n%s", text)
	}
	b.sends(path+"/delete", url.Values{"schedule": {"declared"}, "confirmed": {"yes"}}, http.StatusConflict, "configuration")
	b.wants("/ui/audit?routine=1", "PutSchedule", "TriggerSchedule", "DeleteSchedule")
}

// until waits until something holds.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// TestFormsOfOthers has nothing posted or scheduled by those who may not, nor by forms that
// were not made for the visit. A viewer sees no such form.
func TestFormsOfOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	if _, err := jobs.PutSchedule(t.Context(), board.Schedule{Name: "hourly", Every: time.Hour, Job: job.Posting{Name: "x"}}, nil); err != nil {
		t.Fatal(err)
	}
	admin, viewer := s.signedIn(t, adminSecret), s.signedIn(t, viewerSecret)
	admin.get("/")
	viewer.get("/")
	of := url.Values{"schedule": {"hourly"}, "confirmed": {"yes"}}
	for path, form := range map[string]url.Values{
		"/post": jobForm(), "/schedules": scheduleForm("mine"), "/schedules/pause": of, "/schedules/resume": of, "/schedules/trigger": of, "/schedules/delete": of,
	} {
		path = "/ui/boards/jobs" + path
		viewer.sends(path, form, http.StatusForbidden)
		for _, forged := range []string{"", viewer.form} {
			withForm := url.Values{"form": {forged}}
			maps.Copy(withForm, form)
			admin.sends(path, withForm, http.StatusForbidden, "not made for this visit")
			admin.get("/")
		}
		admin.get(path + "?" + form.Encode())
	}
	viewer.refused("/ui/boards/jobs/post")
	if _, text := viewer.get("/ui/boards/jobs/schedules"); strings.Contains(text, "<button aria-label") || strings.Contains(text, "Make a schedule") || !strings.Contains(text, "hourly") {
		t.Errorf("a viewer sees what only others may do:\n%s", text)
	}
	if _, text := viewer.get("/ui/boards/jobs"); strings.Contains(text, "Post a job") && strings.Contains(text, "/post\"") {
		t.Errorf("a viewer is led to a form:\n%s", text)
	}
	list, err := jobs.Schedules(t.Context(), "", 10)
	if err != nil || len(list) != 1 || list[0].Paused {
		t.Errorf("the schedules are %v, %v", list, err)
	}
	if counts, err := jobs.Count(t.Context()); err != nil || counts.Ready != 0 {
		t.Errorf("%+v, %v", counts, err)
	}
}
