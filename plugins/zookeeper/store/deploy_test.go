package store_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/zookeeper/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// life takes a job through its life.
func (k *desk) life() {
	k.Helper()
	id := k.post("a job", `{}`, nil)
	c := k.claim(id, "worker", time.Minute)
	k.must(byToken(driver.Trash, c, job.TrashedEvent))
	k.must(driver.Op{Kind: driver.Restore, Job: id})
	k.must(byToken(driver.Remove, k.claim(id, "worker", time.Minute), job.ConsumedEvent))
	k.state(id, job.Complete, "consumed")
	space := driver.Space{Board: k.name, Name: "check"}
	if _, err := k.driver.Documents().Put(k.Context(), space, driver.Document{Name: "a", Data: []byte("b")}, 0); err != nil {
		k.Error(err)
	}
}

// TestTLS reaches a server that wants certificates, below a chroot.
func TestTLS(t *testing.T) {
	t.Parallel()
	certificates := testserver.NewCertificates(t)
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true, TLS: certificates})
	tls := map[string]any{"ca_file": certificates.CA, "cert_file": certificates.ClientCert, "key_file": certificates.ClientKey}
	k := sit(t, openWith(t, settingsOf(z.Secure(), map[string]any{"tls": tls, "chroot": "/open/stack"})), "/taskflow/jobs", nil)
	k.life()
	p := &pair{desk: k, z: z}
	c := p.connect()
	defer c.Close()
	if there, _, err := c.Exists("/open/stack/taskflow/jobs"); err != nil || !there {
		t.Errorf("the board is not below the chroot: %v, %v", there, err)
	}
	without := map[string]any{"ca_file": certificates.CA}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	raw, err := json.Marshal(settingsOf(z.Secure(), map[string]any{"tls": without}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(ctx, driver.Config{Settings: raw}, store.Options{}); job.KindOf(err) != job.Unavailable {
		t.Errorf("without a certificate of its own: %v", err)
	}
}

// TestACL keeps a board for one user, and another one as its folder says.
func TestACL(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	p := &pair{desk: &desk{T: t}, z: z}
	admin := p.connect()
	defer admin.Close()
	shared := append(zk.DigestACL(zk.PermAll, "board", "secret"), zk.DigestACL(zk.PermRead, "viewer", "look")...)
	for _, path := range []string{"/of", "/of/.boardd", "/of/.trash"} {
		if _, err := admin.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := admin.Create("/of/jobs", nil, 0, shared); err != nil {
		t.Fatal(err)
	}
	auth := map[string]any{"auth": map[string]any{"credentials": "board:secret"}}
	d := openWith(t, settingsOf(z.Servers(), auth))
	sit(t, d, "/own/jobs", nil).life()
	k := sit(t, d, "/of/jobs", nil)
	k.life()
	id := k.post("to be looked at", `{}`, nil)
	if _, _, err := admin.Children("/own/jobs"); err != zk.ErrNoAuth {
		t.Errorf("somebody without credentials lists a board that is another's: %v", err)
	}
	if err := admin.AddAuth("digest", []byte("viewer:look")); err != nil {
		t.Fatal(err)
	}
	names, _, err := admin.Children("/of/jobs")
	if err != nil || len(names) != 1 {
		t.Fatalf("who may read the folder lists %v, %v", names, err)
	}
	if data, _, err := admin.Get("/of/jobs/" + names[0]); err != nil || !strings.Contains(string(data), id.String()) {
		t.Errorf("who may read the folder may read a job in it: %q, %v", data, err)
	}
	if err := admin.Delete("/of/jobs/"+names[0], -1); err == nil {
		t.Errorf("who may only read has deleted a job")
	}
	stranger := openWith(t, settingsOf(z.Servers(), nil))
	spec := driver.BoardSpec{Name: "x", Settings: []byte(`{"path":"/own/jobs"}`)}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := stranger.OpenBoard(ctx, spec); err == nil {
		t.Errorf("without credentials the board opens")
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "no.pem")
	if err := os.WriteFile(file, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ settings, want string }{
		{`{}`, "servers: want at least one"},
		{`{"servers":["a"]}`, `servers: item 1 is "a"`},
		{`{"servers":["a:1"],"chroot":"x/"}`, "chroot: want an absolute path"},
		{`{"servers":["a:1"],"chroot":"/"}`, "chroot: want an absolute path"},
		{`{"servers":["a:1"],"root":"/x/"}`, "root: want an absolute path"},
		{`{"servers":["a:1"],"session_timeout":"999ms"}`, "session_timeout: want 1s to 5m0s"},
		{`{"servers":["a:1"],"session_timeout":"301s"}`, "session_timeout: want 1s to 5m0s"},
		{`{"servers":["a:1"],"auth":{"credentials":"nobody"}}`, "auth.credentials: want"},
		{`{"servers":["a:1"],"tls":{"ca_file":"` + file + `"}}`, "holds no certificate"},
		{`{"servers":["a:1"],"tls":{"ca_file":"/none"}}`, "tls.ca_file: open /none"},
		{`{"servers":["a:1"],"tls":{"cert_file":"/none"}}`, "tls: want cert_file and key_file, or neither"},
		{`{"servers":["a:1"],"tls":{"cert_file":"/none","key_file":"/none"}}`, "tls.cert_file: open /none"},
	} {
		_, err := store.Open(t.Context(), driver.Config{Settings: []byte(tc.settings)}, store.Options{})
		if job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want Invalid with %q", tc.settings, err, tc.want)
		}
	}
}

func TestBoardSettings(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	d := openWith(t, settingsOf(z.Servers(), nil))
	for _, tc := range []struct{ settings, want string }{
		{`{"path":"jobs"}`, "path: "},
		{`{"path":"/jobs/"}`, "path: "},
		{`{"claims":"for ever"}`, "claims: want"},
		{`{"max_jobs":0}`, "max_jobs: want 1 to 100000"},
		{`{"max_jobs":100001}`, "max_jobs: want 1 to 100000"},
	} {
		_, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Settings: []byte(tc.settings)})
		if job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want Invalid with %q", tc.settings, err, tc.want)
		}
	}
	k := sit(t, d, "/few/jobs", map[string]any{"max_jobs": 3})
	for range 3 {
		k.post("one of three", `{}`, nil)
	}
	id := job.ID(random16())
	full := driver.Op{Kind: driver.Post, Job: id, Posting: &driver.Posting{ID: id, Name: "x", Encoding: job.JSON, Details: []byte(`{}`)}}
	k.kind(full, job.QuotaExceeded, "a job more than max_jobs")
	// All of an op goes through one request.
	big := driver.Op{Kind: driver.Update, Job: k.first()}
	for i := range 20 {
		big.Attach = append(big.Attach, driver.Attachment{Name: text("a%d", i), Data: make([]byte, store.MaxRecord)})
	}
	k.kind(big, job.Invalid, "more than one request holds")
	big.Attach = big.Attach[:0]
	for i := range store.MaxAttachments + 1 {
		big.Attach = append(big.Attach, driver.Attachment{Name: text("a%d", i)})
	}
	k.kind(big, job.Invalid, "more attached records than one job may have")
	big.Attach = big.Attach[:store.MaxAttachments]
	k.must(big)
	long := driver.Document{Name: strings.Repeat("n", store.MaxDocumentName+1)}
	if _, err := d.Documents().Put(t.Context(), driver.Space{Name: "x"}, long, 0); job.KindOf(err) != job.Invalid {
		t.Errorf("a document's name that is too long: %v", err)
	}
}

// first returns any open job.
func (k *desk) first() job.ID {
	for page, err := range k.driver.Scan(k.Context(), k.name, driver.ScanRequest{Limit: 1}) {
		if err != nil || len(page.Records) == 0 {
			k.Fatalf("a scan: %v", err)
		}
		return page.Records[0].Posting.ID
	}
	return job.ID{}
}
