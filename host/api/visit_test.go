package api_test

import (
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/boardd/boardd/host/tenant"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
)

// TestVisitsRead goes through all calls as an operator and as somebody of the role
// support who look at another tenant's boards: those that read are answered as for
// a viewer there and recorded, and all others are refused.
func TestVisitsRead(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	support := newToken(t, s, "default", "helper", "support")
	viewer := &tenant.Principal{Roles: []tenant.Role{tenant.Viewer}}
	for _, secret := range []string{operatorSecret, support} {
		for _, file := range []protoreflect.FileDescriptor{boarddv1.File_boardd_v1_boardd_proto, boarddv1.File_boardd_v1_admin_proto} {
			methods := file.Services().Get(0).Methods()
			for i := range methods.Len() {
				m := methods.Get(i)
				if m.IsStreamingServer() {
					continue
				}
				r := s.do(t, http.MethodPost, "/"+string(m.Parent().FullName())+"/"+string(m.Name()), secret, `{}`, "Boardd-Tenant", "acme")
				if denied := r.status == http.StatusForbidden; denied == viewer.May(string(m.Name()), "") {
					t.Errorf("%s: %d %s", m.Name(), r.status, r.body)
				}
			}
		}
		r := s.do(t, http.MethodPost, "/boardd.v1.BoardService/WhoAmI", secret, `{}`, "Boardd-Tenant", "acme")
		if !strings.Contains(r.body, `"tenant":"acme"`) || !strings.Contains(r.body, `"roles":["viewer"]`) {
			t.Errorf("who it is there: %s", r.body)
		}
		if r := s.do(t, http.MethodPost, "/boardd.v1.BoardService/ListBoards", secret, `{}`, "Boardd-Tenant", "nonesuch"); r.status != http.StatusNotFound {
			t.Errorf("a tenant that does not exist: %d %s", r.status, r.body)
		}
	}
	// A stream is recorded as it begins: this one does not end before the audit log is read.
	client := boarddv1connect.NewBoardServiceClient(s.client, s.url)
	request := connect.NewRequest(&boarddv1.WatchBoardRequest{Board: "default"})
	request.Header().Set("Authorization", "Bearer "+support)
	request.Header().Set("Boardd-Tenant", "acme")
	stream, err := client.WatchBoard(t.Context(), request)
	if err != nil || !stream.Receive() {
		t.Fatalf("%v, %v", err, stream.Err())
	}
	var log struct {
		Records []struct{ Call, Caller, CallerTenant, Tenant, Result string }
	}
	s.mustAdmin(t, operatorSecret, "GetAudit", `{"all":true,"max":1000}`, &log)
	looks := map[string]bool{}
	for _, r := range log.Records {
		if r.CallerTenant == "default" && r.Tenant == "acme" {
			looks[r.Call+" by "+r.Caller] = true
		}
	}
	for _, want := range []string{"WatchBoard by helper", "ListBoards by helper", "ListBoards by operator", "WhoAmI by helper"} {
		if !looks[want] {
			t.Errorf("the audit log lacks %s: %v", want, looks)
		}
	}
	// Nobody else has anything of it, whatever the header names.
	for _, name := range []string{"acme", "nonesuch"} {
		r := s.do(t, http.MethodPost, "/boardd.v1.BoardService/ListBoards", acmeSecret, `{}`, "Boardd-Tenant", name)
		if r.status != http.StatusForbidden || !strings.Contains(r.body, "needs one of [operator, support]") {
			t.Errorf("a tenant's admin about %s: %d %s", name, r.status, r.body)
		}
	}
}
