package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/fleet"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
)

// passedPaths are what servers ask each other, and all calls that can be passed on but for
// streams.
func passedPaths() []string {
	all := []string{hasOpenPath, standPath, findPath, rememberPath}
	for i := range boardMethods().Len() {
		if m := boardMethods().Get(i); !m.IsStreamingServer() {
			all = append(all, "/"+boarddv1connect.BoardServiceName+"/"+string(m.Name()))
		}
	}
	return all
}

// FuzzPassed has a server of the fleet, which has the key, pass on any call, for any caller. It
// may be a later version. Whatever it is, the call is made or refused.
func FuzzPassed(f *testing.F) {
	m := startMember(f, &sharedStore{})
	testserver.Eventually(f, "the server is ready", func() bool { return m.ready(f) })
	caller, err := json.Marshal(tenant.Passed{Tenant: "default", TokenName: "default", Roles: []tenant.Role{tenant.TenantAdmin}})
	if err != nil {
		f.Fatal(err)
	}
	paths := passedPaths()
	for i := range paths {
		f.Add(i, true, "127.0.0.1", caller, []byte(`{"board":"b1"}`))
		f.Add(i, false, "", []byte(`{"tenant":"default","roles":["worker"],"boards":["b*"],"expires":"2026-01-02T03:04:05Z"}`), []byte(`{}`))
	}
	for _, body := range []string{
		`{"boards":[{"Tenant":"default","Name":"b1"},{"Tenant":"","Name":"\u0000"}],"warm":true,"counts":true,"went":true}`,
		`[{"at":{"Tenant":"default","Name":"b1"},"id":"x","move":"y","position":7,"witness":"AAAA"},{}]`,
		`{"boards":["b1","b1","none"],"query":{"filter":"priority = HIGH"},"within":1000000,"caller":{"tenant":"default","roles":["tenant-admin"]}}`,
		`{"board":"b1","jobs":[{"name":"n","details":{"a":1},"after":[{"uuid":"00000000-0000-0000-0000-000000000001"}]}]}`,
		`{"board":"b1","owner":"w","max":3,"lease":"30s","requestId":"r","filter":"name = \"n\""}`,
		`{"board":"b1","claims":[{"uuid":"00000000-0000-0000-0000-000000000001","token":"x"}],"uuids":["00000000-0000-0000-0000-000000000001"]}`,
	} {
		for i := range paths {
			f.Add(i, false, "", caller, []byte(body))
		}
	}
	number := uint64(0)
	f.Fuzz(func(t *testing.T, which int, must bool, remote string, caller, body []byte) {
		number++
		p := fleet.Passed{
			From: m.host.Member().Boot(), To: m.host.Member().Boot(), Number: number, Call: paths[uint(which)%uint(len(paths))],
			Body: fleet.DigestOf(body), Caller: caller, Remote: remote, Must: must,
		}
		header, _, err := m.host.Member().Key().Seal(p)
		if err != nil {
			return // no JSON is sealed
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // some calls wait for jobs
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, m.url+p.Call, bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(peerHeader, header)
		w := httptest.NewRecorder()
		m.handler.ServeHTTP(w, r)
		if w.Code == http.StatusInternalServerError && ctx.Err() == nil {
			t.Fatalf("%s for %s of %q: %s", p.Call, caller, body, w.Body)
		}
	})
}

// instead has the server answer otherwise, where it is to.
func (m *member) instead(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := m.answers.Load()
		if answer == nil || !slices.Contains([]string{standPath, findPath}, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		if _, _, err := m.gate.open(w, r, nil); err == nil {
			_, _ = w.Write(*answer) // who asked has gone, perhaps
		}
	})
}

// FuzzPeerAnswers has another server of the fleet answer with anything.
func FuzzPeerAnswers(f *testing.F) {
	m := startFleet(f)[0]
	session := m.host.PassedSession(tenant.Passed{Tenant: "default", TokenName: "default", Roles: []tenant.Role{tenant.TenantAdmin}})
	for _, text := range []string{
		`[]`, `null`, `[null,null]`,
		`[{"status":{},"rests":{},"counts":{"ready":1},"went":{"waiting":[1],"consumed":[],"failed":null}}]`,
		`[{"board":"b1","jobs":[{"ID":"00000000-0000-0000-0000-000000000001","Name":"x"},null],"more":true},{"kind":3,"problem":"busy"},{"kind":-1}]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		m.other.answers.Store(&answer)
		if list, _ := session.List(t.Context(), host.Listing{Counts: true}); len(list) != fleetBoards {
			t.Errorf("%d boards are listed, want %d", len(list), fleetBoards)
		}
		found := session.Search(t.Context(), host.Query{Filter: `name = "x"`})
		if len(found) != fleetBoards {
			t.Errorf("%d boards were searched, want %d", len(found), fleetBoards)
		}
		for _, h := range found {
			if slices.Contains(h.Jobs, nil) {
				t.Errorf("on the board %q a job is found that is none", h.Board)
			}
		}
	})
}
