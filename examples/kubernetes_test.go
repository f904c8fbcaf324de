package examples

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// rendered returns what the chart makes of a file of values, which tests of a module of
// their own compare with the chart.
func rendered(t *testing.T, name string) string {
	t.Helper()
	return readText(t, filepath.Join("kubernetes", "testdata", name+".golden.yaml"))
}

// mapped returns the configuration in the ConfigMap, with what is read from Secrets in a
// folder of the test's, and other names for places.
func mapped(t *testing.T, text, program string, replace ...string) (path string) {
	t.Helper()
	_, config, _ := strings.Cut(text, "\n  boardd.hcl: |\n")
	config, _, _ = strings.Cut(config, "\n---\n")
	secrets := t.TempDir()
	for _, m := range regexp.MustCompile(`/run/secrets/([\w./-]+)`).FindAllStringSubmatch(config, -1) {
		file := filepath.Join(secrets, m[1])
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("a-secret-in-a-file-of-"+m[1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(config, "\ntls {") || strings.Contains(config, "    tls {") {
		certs := testserver.NewCertificates(t)
		for name, from := range map[string]string{"tls/tls.crt": certs.ServerCert, "tls/tls.key": certs.ServerKey} {
			if err := os.WriteFile(filepath.Join(secrets, name), []byte(readText(t, from)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	replace = append(replace, "/run/secrets", secrets, "/usr/lib/boardd/plugins", filepath.Join(filepath.Dir(program), "plugins"))
	path = t.TempDir() // as a kubelet mounts it: a link to a link to a folder that it puts another in the place of
	if err := os.Mkdir(filepath.Join(path, "..1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "..1", "boardd.hcl"), []byte(strings.NewReplacer(replace...).Replace(config)), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"..data": "..1", "boardd.hcl": "..data/boardd.hcl"} {
		if err := os.Symlink(to, filepath.Join(path, link)); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestChartConfigurations has boardd check each configuration that the chart makes, and
// checks that the documentation has the workers of one.
func TestChartConfigurations(t *testing.T) {
	t.Parallel()
	program := testserver.BuildWith(t, []string{"redis", "postgres"})
	for _, name := range []string{"embedded", "redis", "postgres"} {
		mustRun(t, nil, program, "config", "check", "--config", mapped(t, rendered(t, name), program))
	}
	_, workers, _ := strings.Cut(readText(t, filepath.Join("kubernetes", "testdata", "redis.yaml")), "\nworkers:\n")
	if workers == "" || !strings.Contains(readText(t, filepath.Join("..", "docs", "operating.md")), "\nworkers:\n"+workers+"```\n") {
		t.Errorf("docs/operating.md has other workers than\n%s", workers)
	}
}

// TestChartServes starts two servers with the configuration that the chart makes for Redis,
// calls them by the names that a cluster has for them, and asks for numbers of jobs as KEDA
// does.
func TestChartServes(t *testing.T) {
	t.Parallel()
	const user = "boardd on >a-secret-in-a-file-of-store/password ~* &* +@all"
	certs := testserver.NewCertificates(t)
	redis := testserver.StartRedis(t, testserver.RedisOptions{TLS: certs, Users: []string{user}, Config: []string{"tls-auth-clients no"}})
	program := testserver.BuildWith(t, []string{"redis"})
	text := rendered(t, "redis")
	config := mapped(t, text, program, "redis.stores:6379", redis.Addr, "/run/secrets/store-ca/ca.crt", certs.CA)
	const root, metrics = "a-secret-in-a-file-of-root/token", "a-secret-in-a-file-of-metrics/token"
	servers := []*testserver.Server{testserver.Start(t, program, "", "--config", config), testserver.Start(t, program, "", "--config", config)}
	boards := make([]*client.Board, len(servers))
	for i, s := range servers {
		c, err := client.New(client.Config{Addr: s.Addr, Token: root})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		boards[i] = c.Board("default")
		for _, host := range []string{"jobs-boardd.work.svc.cluster.local:7422", "boards.example.org", "boards.internal.example.org"} {
			if asked := getAs(t, s.Addr+"/metrics", host, metrics); !strings.Contains(asked, "boardd_ready 1\n") {
				t.Errorf("as %s server %d answers:\n%s", host, i+1, asked)
			}
		}
	}
	fromTo(t, boards[0], boards[1])
	if _, err := boards[0].Post(t.Context(), &client.NewJob{Name: "a"}, &client.NewJob{Name: "b"}, &client.NewJob{Name: "c"}); err != nil {
		t.Fatal(err)
	}
	if claims, err := boards[1].Claim(t.Context(), client.ClaimOptions{Owner: "w", Wait: 30 * time.Second}); err != nil || len(claims) != 1 {
		t.Fatalf("%v were claimed: %v", claims, err)
	}
	want := map[string]string{"ready": "2", "claimed": "1"}
	triggers := regexp.MustCompile(`url: "(http://[^/]+)(/[^"]+)"\n +valueLocation: (\w+)\n`).FindAllStringSubmatch(text, -1)
	if len(triggers) != len(want) {
		t.Fatalf("KEDA is told to ask %q", triggers)
	}
	for _, m := range triggers {
		testserver.Eventually(t, "KEDA is told how many are "+m[3], func() bool { // the server hears of what the other one did
			counts := map[string]any{}
			err := json.Unmarshal([]byte(getAs(t, servers[0].Addr+m[2], strings.TrimPrefix(m[1], "http://"), root)), &counts)
			return err == nil && counts[m[3]] == want[m[3]] // text, which KEDA reads as a number
		})
	}
}

// TestChartServesPostgres starts two servers with the configuration that the chart makes for
// PostgreSQL, which wants the password of the file in a Secret. TLS is left out on both sides.
func TestChartServesPostgres(t *testing.T) {
	t.Parallel()
	const password = "a-password-in-a-file"
	pg := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	pg.SQL("postgres", "CREATE ROLE boardd LOGIN PASSWORD '"+password+"'")
	pg.SQL("postgres", "CREATE DATABASE boardd OWNER boardd ENCODING 'UTF8' TEMPLATE template0")
	if err := os.WriteFile(filepath.Join(pg.Dir, "pg_hba.conf"), []byte("host all postgres 127.0.0.1/32 trust\nhost boardd boardd 127.0.0.1/32 scram-sha-256\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pg.SQL("postgres", "SELECT pg_reload_conf()")
	passfile := filepath.Join(t.TempDir(), "passfile")
	if err := os.WriteFile(passfile, []byte(pg.Addr+":boardd:boardd:"+password+"\n"), 0o440); err != nil {
		t.Fatal(err)
	}
	program := testserver.BuildWith(t, []string{"postgres"})
	config := mapped(t, rendered(t, "postgres"), program, "db.stores", pg.Addr, "verify-full", "disable", "/run/secrets/store/passfile", passfile, "/run/secrets/store-ca/ca.crt", testserver.NewCertificates(t).CA,
		"    tls {\n      cert_file = \"/run/secrets/tls/tls.crt\"\n      key_file  = \"/run/secrets/tls/tls.key\"\n    }\n", "")
	boards := make([]*client.Board, 2)
	for i := range boards {
		server := testserver.Start(t, program, "", "--config", config)
		c, err := client.New(client.Config{Addr: server.Addr, Token: "a-secret-in-a-file-of-root/token"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		boards[i] = c.Board("default")
	}
	fromTo(t, boards[0], boards[1])
}
