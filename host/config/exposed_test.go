package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/host/config"
)

// TestExposed: what everybody on the machine can read or write is named, with the command
// that mends it, and nothing else is.
func TestExposed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token := func(name, secret string) string {
		return "token \"" + name + "\" {\n  roles  = [\"viewer\"]\n  " + secret + "\n}\n"
	}
	inline := write("inline.hcl", token("a", `secret = "a-secret-of-some-length"`), 0o644)
	store := write("store.hcl", "backend \"r\" {\n  driver = \"redis\"\n  config = { address = \"127.0.0.1:1\", password = \"x\" }\n}\n", 0o604)
	kept := write("kept.hcl", token("b", `secret = "b-secret-of-some-length"`), 0o640)
	elsewhere := write("elsewhere.hcl", token("c", `secret = env("C")`), 0o644)
	digest := write("digest.hcl", token("d", `secret_sha256 = "`+strings.Repeat("0", 64)+`"`), 0o644)
	plugins := filepath.Join(dir, "plugins")
	if err := os.Mkdir(plugins, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(plugins, 0o777); err != nil {
		t.Fatal(err)
	}
	program := write("plugins/driver", "", 0o706)
	c, err := config.Load(config.Source{
		Paths: []string{inline, store, kept, elsewhere, digest}, PluginDir: plugins,
		Env: func(string) (string, bool) { return "c-secret-of-some-length", true },
	})
	if err != nil {
		t.Fatal(err)
	}
	key := write("server.key", "", 0o644)
	c.TLS = &config.TLS{KeyFile: key}
	want := map[string]string{inline: "chmod o-r ", store: "chmod o-r ", key: "chmod o-r ", plugins: "chmod o-w ", program: "chmod o-w "}
	for _, e := range c.Exposed() {
		if want[e.Path] == "" || e.Mend != want[e.Path]+e.Path {
			t.Errorf("%s: %s: %s", e.Path, e.Problem, e.Mend)
		}
		delete(want, e.Path)
	}
	for path := range want {
		t.Errorf("%s is not named", path)
	}
}
