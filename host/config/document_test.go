package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/host/config"
)

// TestDocumentedConfiguration loads the example of the operator's guide.
func TestDocumentedConfiguration(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(text), "\n```hcl\n")
	example, _, _ = strings.Cut(example, "\n```\n")
	dir := write(t, map[string]string{"server.pem": "", "server.key": "", "boardd.hcl": example})
	secrets := env("ACME_CI_TOKEN", "0123456789abcdef", "ACME_WORKER_TOKEN", "0123456789abcdeF")
	got := load(t, config.Source{Paths: []string{filepath.Join(dir, "boardd.hcl")}, Env: secrets})
	if len(got.Boards) != 1 || got.Boards[0].Name != "builds" || len(got.Tokens) != 2 || got.TLS == nil {
		t.Errorf("the example was read as %+v:\n%s", got, example)
	}
}
