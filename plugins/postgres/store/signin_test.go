package store

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
)

// certified is who the client's certificate of testserver.Certificates is made out to.
const certified = "boardd test 3"

// rules let roles in by TLS alone: one by its certificate, one by its password, and any other.
const rules = `hostnossl all plain 127.0.0.1/8 trust
hostssl all "` + certified + `" 127.0.0.1/8 cert
host all secret 127.0.0.1/8 scram-sha-256
hostssl all app 127.0.0.1/8 trust
`

// A guarded server speaks TLS and lets roles in as rules says.
type guarded struct {
	*testserver.Postgres

	certs      *testserver.Certificates
	host, port string
}

func startGuarded(t *testing.T) *guarded {
	t.Helper()
	certs := testserver.NewCertificates(t)
	p := testserver.StartPostgres(t, testserver.PostgresOptions{
		Fast: true, TLS: certs, Rules: rules, Config: []string{"listen_addresses=127.0.0.1,127.0.0.2"},
	})
	for _, role := range []string{"plain", certified, "secret", "app"} {
		p.SQL("postgres", `CREATE ROLE "`+role+`" LOGIN PASSWORD 'it:is\secret'; GRANT CREATE ON DATABASE postgres TO "`+role+`"`)
	}
	host, port, err := net.SplitHostPort(p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return &guarded{Postgres: p, certs: certs, host: host, port: port}
}

// posts opens a driver by a URL, in a schema of its own, posts a job, and returns how many of
// the driver's connections are encrypted.
func (g *guarded) posts(t *testing.T, schema, at string) (encrypted string, err error) {
	t.Helper()
	d, err := openWith(t.Context(), map[string]any{"url": at, "schema": schema})
	if err != nil {
		return "", err
	}
	defer func() { _ = d.Close() }()
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		return "", err
	}
	done(t, d, postsOf(1))
	return strings.TrimSpace(g.SQL("postgres", `SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'boardd'`)), nil
}

// as is the URL of a role at a host, with libpq's words for how the server is to be proved.
func (g *guarded) as(role, host string, words ...string) string {
	query := url.Values{}
	for i := 0; i < len(words); i += 2 {
		query.Set(words[i], words[i+1])
	}
	u := url.URL{Scheme: "postgres", User: url.User(role), Host: host, Path: "/postgres", RawQuery: query.Encode()}
	return u.String()
}

// TestSignIn signs in to a server as libpq does: with and without TLS, with its proof by an
// authority and by its name, with a certificate, a file of passwords, a service file, and
// several hosts.
func TestSignIn(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	here, elsewhere := net.JoinHostPort(g.host, g.port), net.JoinHostPort("127.0.0.2", g.port) // which is not in the certificate
	stranger := testserver.NewCertificates(t).CA
	nobody := testserver.NewProxy(t, here)
	nobody.Sever(true)
	both := nobody.Addr() + "," + here
	passwords := g.write(t, "passwords", `127.0.0.1:`+g.port+`:*:other:no`+"\n"+`127.0.0.1:`+g.port+`:postgres:secret:it\:is\\secret`+"\n")
	anywhere := g.write(t, "anywhere", `*:*:*:secret:it\:is\\secret`+"\n")
	wrong := g.write(t, "wrong", `*:*:*:secret:guessed`+"\n")
	services := g.write(t, "services", "[boards]\nhost=127.0.0.1\nport="+g.port+"\nuser=app\ndbname=postgres\nsslmode=verify-full\nsslrootcert="+g.certs.CA+"\n")
	for _, c := range []struct {
		name, url string
		want      string // t or f: signed in, with or without TLS; else what the error says
	}{
		{"disable", g.as("plain", here, "sslmode", "disable"), "f"},
		{"disable-where-TLS-is-wanted", g.as("app", here, "sslmode", "disable"), "no pg_hba.conf entry"},
		{"prefer", g.as("app", here), "t"},
		{"prefer-falls-back", g.as("plain", here), "f"},
		{"require-does-not", g.as("plain", here, "sslmode", "require"), "no pg_hba.conf entry"},
		{"require", g.as("app", here, "sslmode", "require"), "t"},
		{"verify-ca", g.as("app", elsewhere, "sslmode", "verify-ca", "sslrootcert", g.certs.CA), "t"},
		{"verify-ca-of-a-stranger", g.as("app", here, "sslmode", "verify-ca", "sslrootcert", stranger), "certificate"},
		{"verify-full", g.as("app", here, "sslmode", "verify-full", "sslrootcert", g.certs.CA), "t"},
		{"verify-full-under-another-name", g.as("app", elsewhere, "sslmode", "verify-full", "sslrootcert", g.certs.CA), "certificate"},
		{"certificate", g.as(certified, here, "sslmode", "verify-full", "sslrootcert", g.certs.CA, "sslcert", g.certs.ClientCert, "sslkey", g.certs.ClientKey), "t"},
		{"no-certificate", g.as(certified, here, "sslmode", "verify-full", "sslrootcert", g.certs.CA), "certificate"},
		{"no-file", g.as("app", here, "sslmode", "verify-full", "sslrootcert", passwords+"-not"), "passwords-not"},
		{"passfile", g.as("secret", here, "sslmode", "require", "passfile", passwords), "t"},
		{"wrong-password", g.as("secret", here, "sslmode", "require", "passfile", wrong), "password authentication failed"},
		{"service", "service=boards servicefile=" + services, "t"},
		{"no-service", "service=other servicefile=" + services, "other"},
		{"several-hosts", g.as("app", both, "sslmode", "verify-full", "sslrootcert", g.certs.CA), "t"},
		{"several-hosts-and-a-password", g.as("secret", both, "sslmode", "require", "passfile", anywhere), "t"},
		{"allow", g.as("plain", here, "sslmode", "allow"), "f"},
		{"allow-needs-TLS", g.as("app", here, "sslmode", "allow"), "t"},
		{"a-standby-is-wanted", g.as("app", here, "target_session_attrs", "standby"), "boards have to be written"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := g.posts(t, strings.ReplaceAll(strings.ToLower(c.name), "-", "_"), c.url)
			switch {
			case len(c.want) == 1 && (err != nil || got != c.want):
				t.Errorf("encrypted: %q, %v; want %s", got, err, c.want)
			case len(c.want) > 1 && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the error is %v: want one with %q", err, c.want)
			case err != nil && strings.Contains(err.Error(), "guessed"):
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

// write writes a file of secrets.
func (g *guarded) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
