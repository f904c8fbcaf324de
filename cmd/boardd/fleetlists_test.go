package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// TestFleetLists asks each of three servers for all boards: the list, its counts, the pages'
// list and their search are those of the whole fleet, whichever server is asked, through a
// drain and a kill, and no board is opened for them on a server whose it is not.
func TestFleetLists(t *testing.T) {
	t.Parallel()
	servers := startFleetWith(t, 3, "")
	settled(t, servers...)
	all := fleetClient(t, servers...)
	var names []string
	for i := range fleetBoards {
		names = append(names, fmt.Sprint("b", i))
		for range i + 1 {
			if _, err := all.Board(names[i]).Post(t.Context(), &client.NewJob{Name: "listed-" + names[i], Labels: map[string]string{"of": "all"}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := all.Board("b2").Pause(t.Context(), "for the test"); err != nil {
		t.Fatal(err)
	}
	t.Run("of all servers", func(t *testing.T) {
		for _, s := range servers {
			fleetListed(t, s, names)
			fleetShown(t, s, names)
		}
		fleetStill(t, servers)
	})
	t.Run("pages", func(t *testing.T) { fleetPages(t, servers, names) })
	t.Run("drained", func(t *testing.T) {
		owner, other := ownerOf(t, "b2", servers...)
		if _, err := fleetAdmin(t, other).DrainServer(t.Context(), &boarddv1.DrainServerRequest{Server: owner.Addr}); err != nil {
			t.Fatal(err)
		}
		testserver.Eventually(t, "its boards have moved", func() bool { return openBoards(t, owner) == "0" })
		for _, s := range servers {
			fleetListed(t, s, names)
		}
		if _, err := fleetAdmin(t, other).DrainServer(t.Context(), &boarddv1.DrainServerRequest{Server: owner.Addr, Undo: true}); err != nil {
			t.Fatal(err)
		}
		settled(t, servers...)
	})
	t.Run("killed", func(t *testing.T) {
		owner, other := ownerOf(t, "b2", servers...)
		owner.Kill()
		if got := listedAt(t, other); !slices.Equal(got, names) {
			t.Errorf("a moment after a kill %s lists %v", other.Addr, got)
		}
		left := []*testserver.Server{other, thirdOf(servers, owner, other)}
		for _, s := range left { // each finds out for itself that it is gone
			testserver.Eventually(t, "its boards have moved", func() bool {
				return !slices.ContainsFunc(counted(t, s), func(b *client.BoardInfo) bool {
					return b.GetCounts() == nil || b.GetServer() == owner.Addr
				})
			})
			fleetListed(t, s, names)
		}
		owner.Restart()
		settled(t, servers...)
		fleetListed(t, owner, names)
	})
	t.Run("page of a board", func(t *testing.T) { fleetBoardPage(t, servers) })
}

// fleetBoardPage looks whether the page of a board is the same at every server: it says what the
// board's server has counted.
func fleetBoardPage(t *testing.T, servers []*testserver.Server) {
	t.Helper()
	owner, _ := ownerOf(t, "b4", servers...)
	board := fleetClient(t, owner).Board("b4")
	claims, err := board.Claim(t.Context(), client.ClaimOptions{Owner: "w", Max: 2})
	if err != nil || len(claims) != 2 {
		t.Fatal(claims, err)
	}
	if err := board.Consume(t.Context(), claims...); err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		answer, err := signedIn(t, s).Get(s.Addr + "/ui/boards/b4")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		by := "this server"
		if s != owner {
			by = owner.Addr
		}
		for _, want := range []string{
			`serving</span>`, `durability [a-z]+, generation [1-9]`, `data-label="Consumed">2<`, "counted by " + regexp.QuoteMeta(by) + ", since",
		} {
			if !regexp.MustCompile(want).Match(text) || err != nil {
				t.Errorf("the page of b4 at %s, which is that of %s, lacks %q, %v:\n%s", s.Addr, owner.Addr, want, err, text)
			}
		}
	}
}

// signedIn is a browser of somebody who has signed in at a server.
func signedIn(t *testing.T, s *testserver.Server) *http.Client {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	answer, err := browser.PostForm(s.Addr+"/ui/signin", url.Values{"token": {fleetToken}})
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return browser
}

// counted returns the boards with their counts.
func counted(t *testing.T, s *testserver.Server) []*client.BoardInfo {
	t.Helper()
	boards, err := fleetClient(t, s).BoardsCounted(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return boards
}

func listedAt(t *testing.T, s *testserver.Server) (names []string) {
	t.Helper()
	for _, b := range counted(t, s) {
		names = append(names, b.GetName())
	}
	return names
}

// fleetListed looks whether a server lists all boards as they stand.
func fleetListed(t *testing.T, s *testserver.Server, names []string) {
	t.Helper()
	var got []string
	for i, b := range counted(t, s) {
		got = append(got, b.GetName())
		if !b.GetReady() || b.GetPaused() != (b.GetName() == "b2") || b.GetDurability() == "" || b.GetCounts().GetReady() != int64(i+1) {
			t.Errorf("%s says of %s: ready %v, paused %v, durability %q, counts %v; %s", s.Addr, b.GetName(), b.GetReady(), b.GetPaused(), b.GetDurability(), b.GetCounts(), b.GetProblem())
		}
	}
	if !slices.Equal(got, names) {
		t.Errorf("%s lists %v, want %v", s.Addr, got, names)
	}
}

// fleetShown looks whether the pages of a server show all boards, and find what is on them.
func fleetShown(t *testing.T, s *testserver.Server, names []string) {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	answer, err := browser.PostForm(s.Addr+"/ui/signin", url.Values{"token": {fleetToken}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	cards := regexp.MustCompile(`(?s)data-key="(b\d)".*?<dt>Ready</dt><dd>(\d+)</dd>`).FindAllSubmatch(text, -1)
	if err != nil || len(cards) != len(names) {
		t.Fatalf("the page of %s shows %d boards with counts, %v:\n%s", s.Addr, len(cards), err, text)
	}
	for i, c := range cards {
		if string(c[1]) != names[i] || string(c[2]) != fmt.Sprint(i+1) {
			t.Errorf("%s shows the board %s with %s jobs in place %d", s.Addr, c[1], c[2], i)
		}
	}
	jobs, _, err := fleetClient(t, s).Board("b4").ListPage(t.Context(), client.ListOptions{}, "")
	if err != nil || len(jobs) != 5 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	for text, want := range map[string]string{"of=all": "21 found", "listed-": "21 found", "listed-b3": "4 found", jobs[0].GetUuid(): "1 found"} {
		answer, err := browser.Get(s.Addr + "/ui/search?q=" + url.QueryEscape(text))
		if err != nil {
			t.Fatal(err)
		}
		page, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if !strings.Contains(string(page), want) || strings.Contains(string(page), "Not searched") {
			t.Errorf("the search for %s at %s: want %s:\n%s", text, s.Addr, want, page)
		}
	}
}

// fleetStill looks whether each board is open on one server.
func fleetStill(t *testing.T, servers []*testserver.Server) {
	t.Helper()
	open := 0
	for _, s := range servers {
		var n int
		if _, err := fmt.Sscan(openBoards(t, s), &n); err != nil {
			t.Fatal(err)
		}
		if open += n; strings.Contains(scrape(t, s), `boardd_board_moves_total{reason="fallback"} 1`) {
			t.Errorf("%s has opened a board that is another server's", s.Addr)
		}
	}
	if open != fleetBoards {
		t.Errorf("%d boards are open, want %d", open, fleetBoards)
	}
}

// fleetPages goes through the list in pages, each at another server, while boards are made
// and deleted: each board that was there all the time is listed once.
func fleetPages(t *testing.T, servers []*testserver.Server, names []string) {
	t.Helper()
	var got []string
	token := ""
	for i := 0; i == 0 || token != ""; i++ {
		s := servers[i%3]
		var page struct {
			Boards        []struct{ Name string }
			NextPageToken string
		}
		status, _, text := ask(t, s, "ListBoards", fmt.Sprintf(`{"pageSize":2,"pageToken":%q}`, token))
		if err := json.Unmarshal([]byte(text), &page); err != nil || status != http.StatusOK {
			t.Fatalf("ListBoards: %d %s", status, text)
		}
		for _, b := range page.Boards {
			if slices.Contains(names, b.Name) {
				got = append(got, b.Name)
			}
		}
		if len(page.Boards) > 2 {
			t.Errorf("a page of %d boards, want 2", len(page.Boards))
		}
		token = page.NextPageToken
		admin := fleetAdmin(t, s)
		made := &boarddv1.CreateBoardRequest{Board: &boarddv1.BoardSettings{Name: fmt.Sprintf("b%d-made", i), Backend: "main"}}
		if _, err := admin.CreateBoard(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		if i > 0 { // the token of this page may be its name
			if _, err := admin.DeleteBoard(t.Context(), &boarddv1.DeleteBoardRequest{Name: fmt.Sprintf("b%d-made", i-1)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.Equal(got, names) {
		t.Errorf("the pages list %v, want %v", got, names)
	}
	for _, s := range servers {
		list, err := fleetAdmin(t, s).ListBoards(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range list {
			if strings.HasSuffix(b.GetName(), "-made") {
				if _, err := fleetAdmin(t, s).DeleteBoard(t.Context(), &boarddv1.DeleteBoardRequest{Name: b.GetName()}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	testserver.Eventually(t, "only the first boards are left on all servers", func() bool {
		for _, s := range servers {
			if !slices.Equal(listedAt(t, s), names) {
				return false
			}
		}
		return true
	})
	settled(t, servers...)
	for size, want := range map[string]int{"-1": http.StatusBadRequest, "1000": http.StatusOK, "1001": http.StatusOK, "0": http.StatusOK} {
		if status, _, text := ask(t, servers[0], "ListBoards", `{"pageSize":`+size+`}`); status != want {
			t.Errorf("a page of %s: %d %s", size, status, text)
		}
	}
}

// TestFleetListsAtRest lists boards that rest, at every server, and opens none by that.
func TestFleetListsAtRest(t *testing.T) {
	t.Parallel()
	servers := startFleetWith(t, 2, `rest_after = "1s"`)
	all := fleetClient(t, servers...)
	once(t, all.Board("b1"))
	rest := func() bool {
		for _, s := range servers {
			if !s.Ready() || openBoards(t, s) != "0" {
				return false
			}
		}
		return true
	}
	testserver.Eventually(t, "all boards rest", rest)
	for _, s := range servers {
		testserver.Eventually(t, "each board is known to rest", func() bool {
			for _, b := range counted(t, s) {
				if !b.GetResting() || b.GetCounts() == nil {
					return false
				}
			}
			return true
		})
		for _, b := range counted(t, s) {
			want := int64(0)
			if b.GetName() == "b1" {
				want = 1
			}
			if !b.GetReady() || b.GetCounts().GetComplete() != want {
				t.Errorf("%s says of %s: %v", s.Addr, b.GetName(), b)
			}
		}
		out, err := exec.CommandContext(t.Context(), withDriver(t, "redis"), "top", "--once", "--interval", "500ms", "--addr", s.Addr, "--token", fleetToken).CombinedOutput()
		if err != nil || strings.Count(string(out), "\n") < fleetBoards {
			t.Errorf("top: %v\n%s", err, out)
		}
	}
	if !rest() {
		t.Error("a board was opened by being listed")
	}
}

// TestFleetRestartAtRest has a Redis be started again that has lost nothing, while all boards
// rest, and their servers go one after the other. Whoever opens a board then remembers nothing
// of it, and says of no board that it may have lost something.
func TestFleetRestartAtRest(t *testing.T) {
	t.Parallel()
	redis := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true})
	servers := startFleetOn(t, redis, 2, `rest_after = "1s"`)
	settledWith(t, 0, servers...) // else the first one opens each board
	all := fleetClient(t, servers...)
	var names []string
	for i := range fleetBoards {
		names = append(names, fmt.Sprint("made", i))
		if _, err := fleetAdmin(t, servers[0]).CreateBoard(t.Context(), &boarddv1.CreateBoardRequest{Board: &boarddv1.BoardSettings{
			Name: names[i], Backend: "main",
		}}); err != nil {
			t.Fatal(err)
		}
		if _, err := all.Board(names[i]).Post(t.Context(), &client.NewJob{Name: "kept"}); err != nil {
			t.Fatal(err)
		}
	}
	owner, other := ownerOf(t, names[0], servers...)
	testserver.Eventually(t, "all boards rest", func() bool {
		return openBoards(t, owner) == "0" && openBoards(t, other) == "0"
	})
	redis.Kill()
	redis.Restart()
	owner.Stop()
	left := fleetClient(t, other)
	for _, name := range names {
		if jobs, err := left.Board(name).Claim(t.Context(), client.ClaimOptions{Owner: "w", Lease: time.Minute}); err != nil || len(jobs) != 1 {
			t.Errorf("%s has lost its job: %v %v", name, jobs, err)
		}
		if info, err := left.Board(name).Info(t.Context()); err != nil || info.GetLoss() != "" {
			t.Errorf("%s says that it has lost something: %v %v", name, info.GetLoss(), err)
		}
	}
}
