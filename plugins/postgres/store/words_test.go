package store

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/sdk/job"
)

// settingsOf reads the settings of a backend with a connection string.
func settingsOf(at string) (settings, error) {
	raw, err := json.Marshal(map[string]string{"url": at})
	if err != nil {
		return settings{}, err
	}
	return readSettings(raw)
}

// TestWords tries libpq's words: each does what it does there, says what is so anyhow, or is
// refused by its name.
func TestWords(t *testing.T) {
	t.Parallel()
	sent := map[string]string{"application_name": "boardd"}
	for _, c := range []struct {
		word, value string
		refused     bool
		sent        string // the value of that word, or of application_name
	}{
		{word: "hostaddr", value: "10.0.0.1", refused: true},
		{word: "load_balance_hosts", value: "random", refused: true},
		{word: "load_balance_hosts", value: "disable"},
		{word: "gssencmode", value: "require", refused: true},
		{word: "gssencmode", value: "prefer"},
		{word: "keepalives", value: "1"},
		{word: "keepalives", value: "0", refused: true},
		{word: "keepalives_idle", value: "30", refused: true},
		{word: "tcp_user_timeout", value: "1000", refused: true},
		{word: "sslcompression", value: "0"},
		{word: "sslcrl", value: "/crl", refused: true},
		{word: "ssl_min_protocol_version", value: "TLSv1.2"},
		{word: "ssl_min_protocol_version", value: "TLSv1.3", refused: true},
		{word: "requirepeer", value: "postgres", refused: true},
		{word: "replication", value: "database", refused: true},
		{word: "client_encoding", value: "LATIN1", refused: true},
		{word: "client_encoding", value: "UTF8"},
		{word: "statement_cache_capacity", value: "0", refused: true},
		{word: "statement_cache_capacity", value: "64"},
		{word: "description_cache_capacity", value: "0", refused: true},
		{word: "pool_max_conns", value: "4", refused: true},
		{word: "pool_min_conns", value: "4", refused: true},
		{word: "target_session_attrs", value: "standby", refused: true},
		{word: "target_session_attrs", value: "prefer-standby", refused: true},
		{word: "target_session_attrs", value: "read-only", refused: true},
		{word: "target_session_attrs", value: "read-write"},
		{word: "target_session_attrs", value: "primary"},
		{word: "target_session_attrs", value: "any"}, // as libpq has it by default, and then boards ask for more
		{word: "fallback_application_name", value: "mine", sent: "mine"},
		{word: "search_path", value: "x", sent: "x"}, // a setting of the server's
	} {
		services := filepath.Join(t.TempDir(), "services")
		if err := os.WriteFile(services, []byte("[s]\nhost=h\nuser=u\n"+c.word+"="+c.value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"postgres://u@h/d?" + c.word + "=" + url.QueryEscape(c.value), "host=h user=u " + c.word + "=" + c.value, "service=s servicefile=" + services} {
			s, err := settingsOf(at)
			if c.refused {
				if job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), c.word+": want ") {
					t.Errorf("%s: %v, want INVALID that names %s and what would be right", at, err, c.word)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", at, err)
				continue
			}
			got := s.pool.ConnConfig.RuntimeParams
			for name, value := range got {
				if want := sent[name]; value != want && value != c.sent {
					t.Errorf("%s: the server is sent %s = %q", at, name, value)
				}
			}
			if c.sent != "" && got[c.word] != c.sent && got["application_name"] != c.sent {
				t.Errorf("%s: the server is sent %v, want %s", at, got, c.sent)
			}
		}
	}
}

// TestPassfileOfOthers: a password is taken from no file that everybody may read.
func TestPassfileOfOthers(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0o600, 0o440, 0o604, 0o602} {
		path := filepath.Join(t.TempDir(), "it's the file")
		if err := os.WriteFile(path, []byte("*:*:*:u:secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		quoted := "'" + strings.ReplaceAll(path, "'", `\'`) + "'"
		from := []string{"postgres://u@h/d?passfile=" + url.PathEscape(path), "host=h user=u passfile=" + quoted}
		for _, at := range slices.Concat(from, []string{"postgres://u:own@h/d?passfile=" + url.PathEscape(path), "host=h user=other passfile=" + quoted}) {
			_, err := settingsOf(at)
			refused := mode&0o007 != 0 && slices.Contains(from, at)
			if refused && (job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), "everybody may use "+path) || strings.Contains(err.Error(), "secret")) || !refused && err != nil {
				t.Errorf("%s with mode %v: %v; refused: %v", at, mode, err, refused)
			}
		}
	}
}
