package testserver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// RootSecret is the secret of the operator's token in configurations that CatalogConfig
// writes.
const RootSecret = "not-very-secret-1234567890"

// CatalogConfig writes the configuration of a server whose boards, tokens and policies
// are made through the API, and returns the file: an operator's token, the backend "main"
// of a driver with a setting such as `address = "127.0.0.1:6379"`, and the catalog in it.
// More blocks may follow.
func CatalogConfig(t testing.TB, driver, setting, more string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "boards.hcl")
	text := fmt.Sprintf(`
token "root" {
  roles  = ["operator"]
  secret = %q
}
catalog { backend = "main" }
backend "main" {
  driver = %q
  config = { %s }
}
%s`, RootSecret, driver, setting, more)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
