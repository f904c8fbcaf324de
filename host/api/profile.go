package api

import (
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// MaxProfile is for how long a profile may be taken.
const MaxProfile = 60 * time.Second

// profilePath is where profiles are.
const profilePath = "/debug/pprof/"

// profiles shows what the process does to operators: how its time and memory go
// by function, and nothing of what a job holds. The command line is not shown, nor
// what changes anything.
type profiles struct {
	gate *gate
	busy sync.Mutex // held while a profile is taken; it guards no field
}

// ServeHTTP answers one request.
func (p *profiles) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	session, err := p.gate.login(r)
	if err != nil {
		p.gate.refuseLogin(w, r, err)
		return
	}
	if err := session.Check(tenant.ProfileCall); err != nil {
		p.gate.refuseCall(w, r, session, err)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, profilePath)
	if text := r.URL.Query().Get("seconds"); text != "" {
		if seconds, err := strconv.Atoi(text); err != nil || seconds < 1 || seconds > int(MaxProfile/time.Second) {
			p.gate.refuse(w, r, http.StatusBadRequest, job.Errorf(job.Invalid, "seconds: want 1 to %d, got %q", MaxProfile/time.Second, clip(text)))
			return
		}
	}
	switch name {
	case "cmdline", "symbol":
		p.gate.refuse(w, r, http.StatusNotFound, job.Errorf(job.NotFound, "%s%s is not served", profilePath, name))
	case "profile", "trace":
		if !p.busy.TryLock() {
			w.Header().Set("Retry-After", "10")
			p.gate.refuse(w, r, http.StatusTooManyRequests, job.Errorf(job.QuotaExceeded, "a profile is being taken already: one at a time"))
			return
		}
		defer p.busy.Unlock()
		if name == "profile" {
			pprof.Profile(w, r)
		} else {
			pprof.Trace(w, r)
		}
	default:
		pprof.Index(w, r) // which knows the others by their names
	}
}
