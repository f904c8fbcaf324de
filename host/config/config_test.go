package config_test

import (
	"crypto/sha256"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

var update = flag.Bool("update", false, "write testdata/*.want anew")

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func load(t *testing.T, source config.Source) *config.Config {
	t.Helper()
	c, err := config.Load(source)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// write puts files into a new folder and returns its name.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var ignorePlaces = cmpopts.IgnoreUnexported(config.Config{})

func TestFull(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	got := load(t, config.Source{Paths: []string{"testdata/full.hcl"}, Env: env("ROOT_TOKEN", "0123456789abcdef")})
	want := &config.Config{
		DrainDelay: 5 * time.Second,
		Listen:     "0.0.0.0:7422", MetricsListen: "127.0.0.1:7423",
		DataDir: here + "/data", PluginDir: "/usr/lib/boardd/plugins",
		Hostnames: []string{"boards.example.org"},
		Audit:     config.Audit{Calls: config.AuditAll, Keep: 90 * 24 * time.Hour, MaxBytes: 2 << 30, KeyFile: "/etc/boardd/audit.pem"},
		TLS:       &config.TLS{CertFile: here + "/server.pem", KeyFile: here + "/server.pem", ClientCAFile: here + "/server.pem"},
		Tokens: []tenant.Token{
			{Name: "root", Tenant: "default", Roles: []tenant.Role{"operator"}, Digest: sha256.Sum256([]byte("0123456789abcdef"))},
			{Name: "ci", Tenant: "acme", Roles: []tenant.Role{"poster", "worker"}, Boards: []string{"octavia"}, Digest: sha256.Sum256([]byte("correct-horse-battery"))},
			{Name: "hashed", Tenant: "acme", Roles: []tenant.Role{"viewer"}, Digest: sha256.Sum256([]byte("test"))},
		},
		Tenants: []string{"default", "acme"},
		Backends: []config.Backend{
			{
				Name: "main", Driver: "redis", Tenants: []string{"acme"},
				Settings: []byte(`{"address":"127.0.0.1:6379","db":3,"half":0.5,"on":true,"sentinels":["a","b"],"tls":{"server_name":"r"}}`),
			},
			{Name: "local", Driver: "embedded", Settings: []byte("{}")},
		},
		Boards: []config.Board{
			{
				Name: "octavia", Tenant: "acme", Backend: "main", Settings: []byte(`{"namespace":"octavia_jobboard"}`),
				Observe: true, FenceByOwner: true, Lease: 45 * time.Second, MaxLease: 12 * time.Hour, AllowNoExpiry: true,
				IdempotencyWindow: 2 * time.Hour,
				Retry:             config.Retry{MaxAttempts: 25, Backoff: 5 * time.Second, MaxBackoff: 30 * time.Minute},
			},
			{
				Name: "octavia", Tenant: "default", Backend: "local", Settings: []byte("{}"),
				Lease: 10 * time.Second, MaxLease: 10 * time.Second, IdempotencyWindow: time.Hour, HideDetails: true,
			},
		},
	}
	if diff := cmp.Diff(want, got, ignorePlaces); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := tenant.NewRegistry(got.Tokens); err != nil {
		t.Errorf("the tokens make no registry: %v", err)
	}
}

var defaultAudit = config.Audit{Calls: config.AuditChanges, Keep: config.DefaultAuditKeep, MaxBytes: config.DefaultAuditBytes}

func TestDefaults(t *testing.T) {
	t.Parallel()
	want := &config.Config{Listen: "127.0.0.1:7422", DrainDelay: 5 * time.Second, Tenants: []string{"default"}, Audit: defaultAudit}
	if diff := cmp.Diff(want, load(t, config.Source{}), ignorePlaces); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestDiagnostics holds every message against the one that was reviewed.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.hcl")
	if err != nil || len(files) < 10 {
		t.Fatalf("got %d files, %v", len(files), err)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(config.Source{Paths: []string{file}, Env: env("ROOT_TOKEN", "0123456789abcdef")})
			got := ""
			if err != nil {
				got = strings.ReplaceAll(err.Error(), here+"/", "") + "\n"
				if !errors.Is(err, job.Invalid) || job.KindOf(err) != job.Invalid {
					t.Errorf("the error's kind is %v, want %v", job.KindOf(err), job.Invalid)
				}
			}
			golden := strings.TrimSuffix(file, ".hcl") + ".want"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestNoMessageHoldsASecret(t *testing.T) {
	t.Parallel()
	const short, long = "hunter2hunter2", "correct-horse-battery"
	dir := write(t, map[string]string{"a.hcl": `
token "a" {
  roles  = ["viewer"]
  secret = env("SHORT")
}
token "b" {
  roles         = ["viewer"]
  secret        = env("LONG")
  secret_sha256 = env("LONG")
}
token "c" {
  roles         = ["viewer"]
  secret_sha256 = env("LONG")
}
token "d" {
  roles  = ["viewer"]
  secret = [env("LONG")]
}
token "e" {
  roles  = ["viewer"]
  secret = "${env("LONG")} "
}
`})
	_, err := config.Load(config.Source{Paths: []string{dir}, Env: env("SHORT", short, "LONG", long)})
	var problems config.Problems
	if !errors.As(err, &problems) || len(problems) != 5 {
		t.Fatalf("got %v, want 5 problems", err)
	}
	if strings.Contains(err.Error(), short) || strings.Contains(err.Error(), long) {
		t.Errorf("a message holds a secret:\n%v", err)
	}
}

func TestDev(t *testing.T) {
	t.Parallel()
	got := load(t, config.Source{Dev: true, DataDir: "/tmp/x"})
	if diff := cmp.Diff(config.Dev("/tmp/x"), got, ignorePlaces); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r, err := tenant.NewRegistry(got.Tokens)
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Authenticate("dev")
	if err != nil || !p.May("PurgeJobs", "default") {
		t.Errorf("the token dev: got %v, %v", p, err)
	}
}

func TestDevWithFile(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"a.hcl": `
listen = "127.0.0.1:0"
data_dir = "d"
tenant "acme" {
  token "ci" {
    roles  = ["worker"]
    secret = "short"
  }
}
board "more" {
  tenant  = "acme"
  backend = "embedded"
}
`})
	got := load(t, config.Source{Dev: true, Paths: []string{dir}})
	if got.Listen != "127.0.0.1:0" || got.DataDir != filepath.Join(dir, "d") || len(got.Boards) != 2 || len(got.Tokens) != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestDevRefuses(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"a.hcl": `insecure_plaintext = true
listen = "0.0.0.0:7422"
token "dev" {
  roles  = ["viewer"]
  secret = "x"
}
backend "embedded" {
  driver = "redis"
}
board "default" {
  backend = "embedded"
}
`})
	_, err := config.Load(config.Source{Dev: true, Paths: []string{filepath.Join(dir, "a.hcl")}})
	file := filepath.Join(dir, "a.hcl")
	want := strings.ReplaceAll(`a.hcl:2,10: listen: with --dev the server listens on loopback only, since everybody knows its token; want 127.0.0.1:7422
a.hcl:3,1: token "dev": the tenant "default" has a token of this name already, at --dev
a.hcl:7,1: backend "embedded": there is a backend of this name already, at --dev
a.hcl:10,1: board "default": the tenant "default" has a board of this name already, at --dev`, "a.hcl", file)
	if err == nil {
		t.Fatal("got no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSeveralPaths(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"b.hcl":      "backend \"two\" {\n  driver = \"embedded\"\n}\n",
		"a.hcl":      "backend \"one\" {\n  driver = \"embedded\"\n}\n",
		"ignored.md": "nothing of this is read",
	})
	other := write(t, map[string]string{"c.conf": "board \"x\" {\n  backend = \"two\"\n}\n"})
	got := load(t, config.Source{Paths: []string{dir, filepath.Join(other, "c.conf")}})
	if len(got.Backends) != 2 || got.Backends[0].Name != "one" || len(got.Boards) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestPathsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"a.hcl": "listen = \"127.0.0.1:1\"\n", "b.hcl": "listen = \"127.0.0.1:2\"\n"})
	a, b := filepath.Join(dir, "a.hcl"), filepath.Join(dir, "b.hcl")
	empty := t.TempDir()
	large := filepath.Join(empty, "large.conf")
	if err := os.WriteFile(large, make([]byte, config.MaxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		paths []string
		want  string
	}{
		"missing":      {[]string{empty + "/x.hcl"}, empty + "/x.hcl: no such file or directory"},
		"empty folder": {[]string{empty}, empty + ": the folder has no file named *.hcl"},
		"twice":        {[]string{a, a}, a + ": the file is given twice"},
		"two listen":   {[]string{a, b}, b + ":1,10: listen is given twice, the first time at " + a + ":1,10"},
		"large":        {[]string{large}, large + ": it has 1048577 bytes; want at most 1048576"},
	} {
		_, err := config.Load(config.Source{Paths: test.paths})
		if err == nil || err.Error() != test.want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, test.want)
		}
	}
}

func TestDriversPathsAreRelativeToTheFile(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"a.hcl": `
backend "a" {
  driver = "embedded"
  config = { path = "store" }
}
backend "b" {
  driver = "embedded"
  config = { path = "/var/store" }
}
backend "c" {
  driver = "strange"
  config = { path = "store" }
}
backend "d" {
  driver = "embedded"
  config = { path = 7 }
}
`})
	c := load(t, config.Source{Paths: []string{dir}})
	want := []string{`{"path":"` + dir + `/store"}`, `{"path":"/var/store"}`, `{"path":"store"}`, `{"path":7}`}
	for i, b := range c.Backends {
		if got := string(b.Settings); got != want[i] {
			t.Errorf("%s: got %s, want %s", b.Name, got, want[i])
		}
	}
}

func TestOverride(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"a.hcl": `
listen     = "127.0.0.1:1"
data_dir   = "d"
plugin_dir = "p"
`})
	got := load(t, config.Source{Paths: []string{dir}, Listen: "[::1]:2", DataDir: "/D", PluginDir: "/P"})
	want := &config.Config{Listen: "[::1]:2", DataDir: "/D", PluginDir: "/P", DrainDelay: 5 * time.Second, Tenants: []string{"default"}, Audit: defaultAudit}
	if diff := cmp.Diff(want, got, ignorePlaces); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	_, err := config.Load(config.Source{Paths: []string{dir}, Listen: "0.0.0.0:2"})
	if err == nil || !strings.HasPrefix(err.Error(), "--listen: other machines can reach 0.0.0.0:2") {
		t.Errorf("got %v", err)
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	c := load(t, config.Source{Paths: []string{"testdata/full.hcl"}, Env: env("ROOT_TOKEN", "0123456789abcdef")})
	for _, test := range []struct {
		kind, name string
		path       []string
		want       string
	}{
		{"", "", []string{"listen"}, "testdata/full.hcl:1,18"},
		{"", "", []string{"absent"}, ""},
		{"tls", "", []string{"key_file"}, "testdata/full.hcl:9,20"},
		{"backend", "main", nil, "testdata/full.hcl:18,1"},
		{"backend", "main", []string{"config"}, "testdata/full.hcl:20,13"},
		{"backend", "main", []string{"config", "address"}, "testdata/full.hcl:20,25"},
		{"backend", "main", []string{"config", "tls", "server_name"}, "testdata/full.hcl:20,65"},
		{"backend", "main", []string{"config", "tls", "absent"}, "testdata/full.hcl:20,49"},
		{"backend", "local", []string{"config", "path"}, "testdata/full.hcl:23,1"},
		{"backend", "absent", nil, ""},
		{"board", "acme/octavia", []string{"config", "namespace"}, "testdata/full.hcl:40,38"},
		{"board", "acme/octavia", []string{"retry", "backoff"}, "testdata/full.hcl:49,20"},
		{"board", "default/octavia", nil, "testdata/full.hcl:53,1"},
		{"token", "acme/ci", []string{"boards"}, "testdata/full.hcl:30,14"},
	} {
		if got := c.Locate(test.kind, test.name, test.path...); got != test.want {
			t.Errorf("Locate(%q, %q, %q) = %q, want %q", test.kind, test.name, test.path, got, test.want)
		}
	}
	if got := config.Dev("").Locate("board", "default/default"); got != "" {
		t.Errorf("a board of --dev is at %q", got)
	}
}

func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.hcl")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(strings.Repeat("a=!", 5000)))
	f.Add([]byte("listen = \"${[for a in [1,2]: a]}\"\nhostnames = [for k, v in {a = \"b\"}: v...]"))
	f.Add([]byte("data_dir = <<-X\n  a\n  X\nplugin_dir = true ? \"a\" : null"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(dir, "fuzz.hcl")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Source{Paths: []string{file}})
		if (c == nil) == (err == nil) {
			t.Fatalf("got %v and %v", c, err)
		}
		if c == nil {
			return
		}
		for _, b := range c.Boards {
			if b.Lease <= 0 || b.Lease > b.MaxLease || b.IdempotencyWindow <= 0 {
				t.Errorf("a board without sense was accepted: %+v", b)
			}
		}
		if _, err := tenant.NewRegistry(c.Tokens); err != nil {
			t.Errorf("tokens were accepted that make no registry: %v", err)
		}
	})
}

func TestParseBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "65536": 65536, "64KiB": 64 << 10, "1GiB": 1 << 30, "1 MiB": 1 << 20, "2kB": 2000, "3GB": 3e9, "1TiB": 1 << 40, "7B": 7,
		"2305843009213693951": config.MaxLimit,
	} {
		if got, err := config.ParseBytes(text); got != want || err != nil {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1.5GiB", "1gib", "1XB", "2305843009213693952", "2097152TiB", "9999999999999999999"} {
		if got, err := config.ParseBytes(text); err == nil {
			t.Errorf("%q: got %d", text, got)
		}
	}
}

func TestBooks(t *testing.T) {
	t.Parallel()
	c := load(t, config.Source{Paths: []string{"testdata/books.hcl"}})
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Books{
		{Directory: here + "/taskflow"},
		{Backend: "zk", Path: config.DefaultBooksPath},
		{Backend: "zk", Path: "/octavia/books"},
	}
	for i, b := range c.Boards {
		if b.Books != want[i] {
			t.Errorf("board %s: %+v, want %+v", b.Name, b.Books, want[i])
		}
	}
}

// TestRestAfter reads when boards rest.
func TestRestAfter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"": 0, `rest_after = "0s"`: -1, `rest_after = "1s"`: time.Second, `rest_after = "24h"`: config.MaxRestAfter,
		`rest_after = "999ms"`: 0, `rest_after = "24h1s"`: 0, `rest_after = "-1s"`: 0,
	} {
		path := filepath.Join(t.TempDir(), "boards.hcl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Source{Paths: []string{path}, Env: env()})
		switch {
		case want == 0 && text != "":
			if err == nil || !strings.Contains(err.Error(), "rest_after: want") {
				t.Errorf("%s: %v", text, err)
			}
		case err != nil:
			t.Errorf("%s: %v", text, err)
		case c.RestAfter != want:
			t.Errorf("%s: %v, want %v", text, c.RestAfter, want)
		}
	}
}
