package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
)

const operatorSecret = "operator-secret-of-the-test"

// recorded has a server of a fleet record what happens on its boards, and let an operator in.
func recorded(t *testing.T) func(*config.Config) {
	t.Helper()
	return func(c *config.Config) {
		c.DataDir = t.TempDir()
		for i := range c.Boards {
			c.Boards[i].Record = time.Hour
		}
		c.Tokens = append(c.Tokens, tenant.Token{Name: "root", Tenant: tenant.Default, Roles: []tenant.Role{tenant.Operator}, Digest: tenant.DigestOf(operatorSecret)})
	}
}

// TestAdminOfTheOwner asks each server of a fleet for what only the server that has a board open
// has seen of it: both say the same, since the other one is asked, and none opens a board for it.
func TestAdminOfTheOwner(t *testing.T) {
	t.Parallel()
	servers := startFleet(t, recorded(t))
	asked, owner := servers[0], servers[1]
	open := [2]int{asked.host.OpenBoards(), owner.host.OpenBoards()}
	for _, of := range fleetTenants {
		board, id := owner.has(t, of), newUUID()
		for _, call := range [][2]string{
			{"PostJobs", `{"board":%q,"jobs":[{"uuid":"` + id + `","name":"x"}]}`},
			{"ClaimJobs", `{"board":%q,"owner":"w","names":["x"]}`},
		} {
			if a, err := owner.call(t.Context(), of, call[0], fmt.Sprintf(call[1], board)); err != nil || a.status != http.StatusOK {
				t.Fatalf("%s: %d %s, %v", call[0], a.status, a.text, err)
			}
		}
		for _, secret := range []string{secretOf(of), operatorSecret} {
			simulated(t, asked, owner, secret, of, board)
		}
		exported(t, asked, owner, of, board, id)
	}
	if now := [2]int{asked.host.OpenBoards(), owner.host.OpenBoards()}; now != open {
		t.Errorf("%v boards are open, want %v as before", now, open)
	}
}

// simulated has a server go through a recording of another one, and ask that for what a policy
// does in the shadow.
func simulated(t *testing.T, asked, owner *member, secret, of, board string) {
	t.Helper()
	body := fmt.Sprintf(`{"tenant":%q,"board":%q,"name":"aging"}`, of, board)
	var want string
	for i, m := range []*member{owner, asked} {
		a, err := m.callAs(t.Context(), secret, "AdminService/SimulatePolicy", body)
		var report struct{ Jobs, Claims string }
		if err := json.Unmarshal([]byte(a.text), &report); err != nil {
			t.Fatal(err)
		}
		report.Jobs += " " + report.Claims
		if from := [...]string{"", owner.advertised()}[i]; err != nil || a.status != http.StatusOK || a.from != from || report.Jobs != "1 1" {
			t.Errorf("a simulation at %s: %d %s, from %q, want that of one job and one claim from %q; %v", m.advertised(), a.status, a.text, a.from, from, err)
		}
		if got := strings.Join(strings.Fields(a.text), " "); i > 0 && len(got) != len(want) {
			t.Errorf("the simulation is %s here, and %s there", got, want)
		} else {
			want = got
		}
	}
	a, err := asked.callAs(t.Context(), secret, "AdminService/ShadowPolicy", fmt.Sprintf(`{"tenant":%q,"board":%q,"name":"nobodys"}`, of, board))
	if err != nil || a.status != http.StatusNotFound || a.from != owner.advertised() {
		t.Errorf("a shadow: %d %s, from %q, %v", a.status, a.text, a.from, err)
	}
	wrong := [2]string{secretOf("acme"), fmt.Sprintf(`{"tenant":"default","board":%q,"name":"aging"}`, board)}
	if a, err := asked.callAs(t.Context(), wrong[0], "AdminService/SimulatePolicy", wrong[1]); err != nil || a.status != http.StatusNotFound || a.from != "" {
		t.Errorf("a simulation of another tenant's: %d %s, from %q, %v", a.status, a.text, a.from, err)
	}
}

// exported has a server export a board of another one.
func exported(t *testing.T, asked, owner *member, of, board, id string) {
	t.Helper()
	r := connect.NewRequest(&boarddv1.ExportBoardRequest{Tenant: of, Board: board})
	r.Header().Set("Authorization", "Bearer "+operatorSecret)
	stream, err := boarddv1connect.NewAdminServiceClient(http.DefaultClient, asked.url).ExportBoard(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for stream.Receive() {
		text.Write(stream.Msg().GetData())
	}
	if err := stream.Err(); err != nil || !strings.Contains(text.String(), id) || !strings.Contains(text.String(), `"sha256"`) {
		t.Errorf("the export has %q, %v", text.String(), err)
	}
	if from := stream.ResponseHeader().Get(serverHeader); from != owner.advertised() {
		t.Errorf("the export is from %q, want %q", from, owner.advertised())
	}
}

// TestAdminWithoutTheOwner has a server answer by itself where the one that has the board cannot be
// reached: it has recorded nothing.
func TestAdminWithoutTheOwner(t *testing.T) {
	t.Parallel()
	servers := startFleet(t, recorded(t))
	asked, owner := servers[0], servers[1]
	board := owner.has(t, "default")
	owner.way.Sever(true)
	testserver.Eventually(t, "the server answers by itself", func() bool {
		a, err := asked.callAs(t.Context(), operatorSecret, "AdminService/SimulatePolicy", fmt.Sprintf(`{"board":%q,"name":"aging"}`, board))
		return err == nil && a.from == "" && a.status == http.StatusBadRequest && strings.Contains(a.text, "nothing was recorded")
	})
}
