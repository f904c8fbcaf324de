package config_test

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/webhook"
)

const hooked = `
data_dir = "data"
backend "main" {
  driver = "embedded"
}
board "hooks" {
  backend = "main"
}
board "jobs" {
  backend = "main"
  webhook "all" {
    url        = "https://example.com/hook"
    secret     = file("hook.secret")
    deliveries = "hooks"
  }
  webhook "some" {
    url            = "http://10.1.2.3:8080/"
    secret         = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    events         = ["TRASHED", "EXHAUSTED", "TRASHED"]
    oldest_waiting = "10m"
    networks       = ["10.1.0.0/16", "fd00::/8"]
    timeout        = "30s"
    deliveries     = "hooks"
  }
}
`

// TestWebhooks reads the webhooks of a board.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"boardd.hcl": hooked, "hook.secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\nwhsec_c2VjcmV0LW9mLWEtcm90YXRlZC1lbmRwb2ludA==\n"})
	c := load(t, config.Source{Paths: []string{filepath.Join(dir, "boardd.hcl")}})
	hooks := c.Boards[1].Webhooks
	if len(hooks) != 2 {
		t.Fatalf("%+v", hooks)
	}
	all, some := hooks[0], hooks[1]
	if all.Board != "jobs" || all.Name != "all" || len(all.Secrets) != 2 || len(all.Events) != 3 || all.Timeout != 0 || all.Deliveries != "hooks" {
		t.Errorf("%+v", all)
	}
	networks := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}
	if !slices.Equal(some.Events, []webhook.Kind{webhook.Trashed, webhook.Exhausted}) || some.Waiting != 10*time.Minute || !slices.Equal(some.Networks, networks) || some.Timeout != 30*time.Second {
		t.Errorf("%+v", some)
	}
	for _, text := range c.Boards[1].HookAddresses() {
		if strings.Contains(text, "whsec") {
			t.Errorf("a secret stands in %s", text)
		}
	}
}

// TestManyWebhooks: a board has as many as it may, and no more.
func TestManyWebhooks(t *testing.T) {
	t.Parallel()
	for _, n := range []int{webhook.MaxPerBoard, webhook.MaxPerBoard + 1} {
		var text strings.Builder
		text.WriteString("data_dir = \"data\"\nbackend \"main\" {\n driver = \"embedded\"\n}\nboard \"hooks\" {\n backend = \"main\"\n}\nboard \"jobs\" {\n backend = \"main\"\n")
		for i := range n {
			fmt.Fprintf(&text, " webhook \"h%d\" {\n  url = \"https://example.com/\"\n  secret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"\n  deliveries = \"hooks\"\n }\n", i)
		}
		text.WriteString("}\n")
		dir := write(t, map[string]string{"boardd.hcl": text.String()})
		_, err := config.Load(config.Source{Paths: []string{filepath.Join(dir, "boardd.hcl")}})
		if (err == nil) != (n <= webhook.MaxPerBoard) || err != nil && !strings.Contains(err.Error(), "at most 16 webhooks") {
			t.Errorf("%d: %v", n, err)
		}
	}
}
