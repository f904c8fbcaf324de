package store

import (
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/boardd/boardd/sdk/job"
)

// A word of libpq's connection strings that the library does not know, and would send to the server
// as a setting, which refuses it.
type word struct {
	fine []string // values that say what is so anyhow
	want string   // what would be right instead
}

// words are those that libpq does not send to the server either, and some of the library's own.
var words = map[string]word{
	"hostaddr":                 {want: "the address as host"},
	"load_balance_hosts":       {fine: []string{"disable"}, want: `"disable": hosts are tried in turn`},
	"gssencmode":               {fine: []string{"disable", "prefer"}, want: `"disable" or "prefer": nothing is encrypted by GSSAPI`},
	"gssdelegation":            {fine: []string{"0"}, want: `"0": nothing is delegated`},
	"gsslib":                   {want: "it left out: it is for Windows"},
	"keepalives":               {fine: []string{"1"}, want: `"1": the driver probes its connections itself`},
	"keepalives_idle":          {want: "it left out: the driver probes its connections itself"},
	"keepalives_interval":      {want: "it left out: the driver probes its connections itself"},
	"keepalives_count":         {want: "it left out: the driver probes its connections itself"},
	"tcp_user_timeout":         {want: "it left out: the driver gives up a connection on which nothing was acknowledged for 11 s"},
	"sslcompression":           {fine: []string{"0"}, want: `"0": nothing is compressed`},
	"sslcrl":                   {want: "it left out: no lists of revoked certificates are read"},
	"sslcrldir":                {want: "it left out: no lists of revoked certificates are read"},
	"ssl_min_protocol_version": {fine: []string{"TLSv1.2"}, want: `"TLSv1.2", which is the least that is spoken`},
	"ssl_max_protocol_version": {fine: []string{"TLSv1.3"}, want: `"TLSv1.3", or it left out`},
	"sslkeylogfile":            {want: "it left out: keys are written nowhere"},
	"requirepeer":              {want: "it left out, and TLS with sslmode=verify-full to know the server"},
	"scram_client_key":         {want: "a password, in passfile"},
	"scram_server_key":         {want: "a password, in passfile"},
	"oauth_issuer":             {want: "a password or a certificate: OAuth is not there"},
	"oauth_client_id":          {want: "a password or a certificate: OAuth is not there"},
	"oauth_client_secret":      {want: "a password or a certificate: OAuth is not there"},
	"oauth_scope":              {want: "a password or a certificate: OAuth is not there"},
	"replication":              {want: "it left out: boards are no stream of replication"},
	"client_encoding":          {fine: []string{"UTF8", "utf8", "UTF-8", "utf-8"}, want: `"UTF8"`},
}

// checkWords refuses words in a connection string, and in the service file that it names, that
// would not do what they do in libpq.
func checkWords(at string) error {
	c, err := pgconn.ParseConfig(at)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.RuntimeParams)) {
		value := c.RuntimeParams[name]
		if n, err := strconv.Atoi(value); err == nil && n < 1 && strings.HasSuffix(name, "_cache_capacity") {
			return job.Errorf(job.Invalid, `url: %s: want at least 1; for a pool of connections that knows no prepared statements there is "default_query_exec_mode=cache_describe"`, name)
		}
		if strings.HasPrefix(name, "pool_") {
			return job.Errorf(job.Invalid, "url: %s: want the setting max_connections of the backend: the driver has a pool of its own", name)
		}
		if w, known := words[name]; known && !slices.Contains(w.fine, value) {
			return job.Errorf(job.Invalid, "url: %s: want %s, got %.64q", name, w.want, value)
		}
	}
	for name, unfit := range map[string]pgconn.ValidateConnectFunc{
		"read-only": pgconn.ValidateConnectTargetSessionAttrsReadOnly, "standby": pgconn.ValidateConnectTargetSessionAttrsStandby,
		"prefer-standby": pgconn.ValidateConnectTargetSessionAttrsPreferStandby,
	} {
		if c.ValidateConnect != nil && reflect.ValueOf(c.ValidateConnect).Pointer() == reflect.ValueOf(unfit).Pointer() {
			return job.Errorf(job.Invalid, `url: target_session_attrs: want "read-write", or leave it out: boards have to be written, which %q does not let them be`, name)
		}
	}
	return checkPassfile(at, c.Password)
}

// inPassfile finds the file of passwords in a connection string.
var inPassfile = regexp.MustCompile(`(?:^|[?&\s])passfile\s*=\s*('(?:[^'\\]|\\.)*'|[^&\s]+)`)

// checkPassfile refuses a password from a file that everybody may read, which libpq takes none
// from. The file's group may read it: so a secret comes into a pod of Kubernetes.
func checkPassfile(at, password string) error {
	if password == "" || runtime.GOOS == "windows" {
		return nil
	}
	isURL := strings.HasPrefix(at, "postgres://") || strings.HasPrefix(at, "postgresql://")
	without, join := at+" passfile="+os.DevNull, "?"
	if isURL {
		if strings.Contains(at, "?") {
			join = "&"
		}
		without = at + join + "passfile=" + url.QueryEscape(os.DevNull)
	}
	if c, err := pgconn.ParseConfig(without); err == nil && c.Password != "" {
		return nil // it is from elsewhere
	}
	home, _ := os.UserHomeDir() // no variable that names another file reaches a driver
	path := filepath.Join(home, ".pgpass")
	if found := inPassfile.FindStringSubmatch(at); found != nil {
		path = strings.ReplaceAll(strings.Trim(found[1], "'"), `\`, "")
		if plain, err := url.PathUnescape(found[1]); isURL && err == nil {
			path = plain
		}
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o007 != 0 {
		return job.Errorf(job.Invalid, "url: passfile: everybody may use %s (%v): want it readable by its owner, or its group, alone (chmod 600)", path, info.Mode().Perm())
	}
	return nil
}
