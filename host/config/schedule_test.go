package config_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

const scheduled = `
data_dir = "data"
backend "main" {
  driver = "embedded"
}
board "jobs" {
  backend = "main"
  schedule "nightly" {
    cron     = "0 3 * * *"
    timezone = "Europe/Berlin"
    overlap  = "skip"
    catch_up = "1h"
    jitter   = "30s"
    job {
      name         = "report"
      details      = { customer = "acme", rows = 10 }
      priority     = "very_high"
      labels       = { team = "b", customer = "acme" }
      max_attempts = 3
      timeout      = "1h"
      unique {
        key         = "report"
        window      = "12h"
        on_conflict = "reject"
      }
    }
  }
  schedule "poll" {
    every   = "30s"
    overlap = "cancel"
    job {
      name = "poll"
    }
  }
}
`

// TestSchedules reads the schedules of a board.
func TestSchedules(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"boardd.hcl": scheduled})
	path := filepath.Join(dir, "boardd.hcl")
	c := load(t, config.Source{Paths: []string{path}})
	want := []board.Schedule{
		{
			Name: "nightly", Cron: "0 3 * * *", Timezone: "Europe/Berlin", Overlap: board.OverlapSkip, CatchUp: time.Hour, Jitter: 30 * time.Second,
			Job: job.Posting{
				Name: "report", Details: []byte(`{"customer":"acme","rows":10}`), Priority: job.VeryHigh, MaxAttempts: 3, Timeout: time.Hour,
				Labels: []job.Label{{Key: "customer", Value: "acme"}, {Key: "team", Value: "b"}},
				Unique: job.Unique{Key: "report", Window: 12 * time.Hour, OnConflict: job.Reject},
			},
		},
		{Name: "poll", Every: 30 * time.Second, Overlap: board.OverlapCancel, Job: job.Posting{Name: "poll"}},
	}
	if diff := cmp.Diff(want, c.Boards[0].Schedules); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if at := c.Locate("board", "default/jobs", "schedule", "nightly", "job", "unique", "window"); at != path+":23,23" {
		t.Errorf("the window stands at %s", at)
	}
}

// TestLongSchedules: what is too long is said where it stands, with how long it may be.
func TestLongSchedules(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return strings.Repeat("x", n) }
	for _, test := range []struct{ name, schedule, job, want string }{
		{"the longest", text(tenant.MaxNameLength), `name = "` + text(job.MaxName) + `"`, ""},
		{"a long name", text(tenant.MaxNameLength + 1), `name = "x"`, `:7,12: board "jobs": schedule: "` + text(40)},
		{"a job's long name", "s", `name = "` + text(job.MaxName+1) + `"`, `:10,14: board "jobs": schedule "s": job: name: `},
		{"a long label", "s", "name = \"x\"\nlabels = { a = \"" + text(job.MaxLabelValue+1) + `" }`, `:11,10: board "jobs": schedule "s": job: labels.a: `},
		{"large details", "s", "name = \"x\"\ndetails = { a = \"" + text(900_000) + `" }`, `:7,3: board "jobs": schedule "s": `},
	} {
		dir := write(t, map[string]string{"boardd.hcl": fmt.Sprintf(`data_dir = "data"
backend "main" {
  driver = "embedded"
}
board "jobs" {
  backend = "main"
  schedule %q {
    every = "1h"
    job {
      %s
    }
  }
}
`, test.schedule, test.job)})
		path := filepath.Join(dir, "boardd.hcl")
		_, err := config.Load(config.Source{Paths: []string{path}})
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want == "":
		case err == nil || !strings.HasPrefix(err.Error(), path+test.want) || len(err.Error()) > 400 || strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: got %v, want %s", test.name, err, path+test.want)
		default:
			t.Log(err)
		}
	}
}

// TestWish: what a file says that is applied is read as a configuration is, but that webhooks
// need no secret, policies have a tenant, and what it does not have is the server's to know.
func TestWish(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"wish.hcl": `board "jobs" {
  backend = "main"
  schedule "s" {
    every = "1h"
    job {
      name = "x"
    }
  }
  webhook "w" {
    url        = "https://example.com/"
    deliveries = "elsewhere"
    paused     = true
  }
}
`, "wrong.hcl": `board "jobs" {
  backend = "main"
  schedule "s" {
  }
  webhook "w" {
    url        = "https://example.com/"
    secret     = "geheim"
    deliveries = "seen"
  }
}
board "seen" {
  backend = "main"
  mode    = "observe"
}
policy "p" {
  tenant = "acme"
}
`})
	c, err := config.Wish(filepath.Join(dir, "wish.hcl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if b := c.Boards[0]; len(b.Schedules) != 1 || b.Schedules[0].Every != time.Hour || len(b.Webhooks) != 1 || len(b.Webhooks[0].Secrets) != 0 || !b.Webhooks[0].Paused {
		t.Errorf("%+v", b)
	}
	if at := c.Locate("board", "default/jobs", "webhook", "w", "deliveries"); !strings.HasSuffix(at, "wish.hcl:11,18") {
		t.Errorf("the deliveries stand at %s", at)
	}
	wrong := filepath.Join(dir, "wrong.hcl")
	_, err = config.Wish(wrong, nil)
	for _, want := range []string{
		`:3,3: board "jobs": schedule "s": want either cron or every`, `:7,18: board "jobs": webhook "w": secret: want whsec_`,
		`:8,18: board "jobs": webhook "w": deliveries: the board "seen" is only observed`, `:15,1: policy "p": path: it is missing`,
	} {
		if err == nil || !strings.Contains(err.Error(), wrong+want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
