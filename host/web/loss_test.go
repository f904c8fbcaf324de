package web_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// TestLossOnThePage has a store come back without what it had acknowledged: the board's
// page says so until an administrator acknowledges it there.
func TestLossOnThePage(t *testing.T) {
	t.Parallel()
	program := testserver.Build(t, "./cmd/boardd")
	store := testserver.StartRedis(t, testserver.RedisOptions{})
	plugins := filepath.Dir(testserver.Build(t, "./plugins/redis"))
	s := begin(t, program, fmt.Sprintf("driver = \"redis\"\n  config = { address = %q }", store.Addr), `config = { namespace = "jobs" }`, "--plugin-dir", plugins)
	s.post(&client.NewJob{Name: "kept"})
	if answer := store.Command("SAVE"); answer != "+OK" {
		t.Fatal(answer)
	}
	s.post(&client.NewJob{Name: "lost"})
	store.Kill()
	store.Restart()
	const says = "The store has lost changes that were acknowledged"
	testserver.Eventually(t, "the board shows the loss", func() bool {
		info, err := s.jobs.Info(t.Context())
		return err == nil && info.GetLoss() != ""
	})
	s.run("signing in", signIn(s.server.Addr, adminSecret))
	s.run("seeing the loss", s.goTo("/ui/boards/jobs"), shows(says), shows("found"))
	s.run("going back instead", click(`form[action$="/loss"] button`), shows("put right"), click(`a.button`), shows(says))
	s.run("acknowledging it", click(`form[action$="/loss"] button`), shows("put right"), click(`button.main`), chromedp.WaitVisible(chromedp.CSS("#jobs")), shows("kept"))
	if text := said(s.tab); strings.Contains(text, says) {
		t.Errorf("the loss is shown after it was acknowledged:\n%s", text)
	}
	s.run("reading who did it", click(`header a[href="/ui/audit"]`), shows("AcknowledgeLoss"))
}
