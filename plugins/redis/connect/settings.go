package connect

import (
	"bytes"
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Limits on settings.
const (
	MaxServers = 64 // sentinels or cluster nodes that are named
	MaxDB      = 1<<16 - 1

	MaxTimeout = time.Hour // for an answer, and for a connection
)

const defaultAddress = "127.0.0.1:6379"

// settings say where Redis is. One of the first four is given, or none.
type settings struct {
	Address   string   `json:"address"`
	URL       string   `json:"url"`
	Sentinels []string `json:"sentinels"`
	Cluster   []string `json:"cluster"`

	MasterName       string       `json:"master_name"`
	SentinelUsername string       `json:"sentinel_username"`
	SentinelPassword string       `json:"sentinel_password"`
	SentinelTLS      *tlsSettings `json:"sentinel_tls"`

	Username string       `json:"username"`
	Password string       `json:"password"`
	DB       int          `json:"db"`
	TLS      *tlsSettings `json:"tls"`

	// As TaskFlow's configuration has them.
	SocketTimeout        string `json:"socket_timeout"`
	SocketConnectTimeout string `json:"socket_connect_timeout"`
	SSLCertReqs          string `json:"ssl_cert_reqs"`

	answer, connect time.Duration // what the two timeouts say; 0: nothing
}

// Schema declares the settings of a backend that say where Redis is.
func Schema() driver.Schema {
	return driver.Schema{Fields: []driver.Field{
		{Name: "address", Type: driver.String, Doc: "host:port, or the path of a unix socket; 127.0.0.1:6379 if no other place is given"},
		{Name: "url", Type: driver.String, Secret: true, Doc: "instead: redis://, rediss:// or unix://, with user, password and db in it"},
		{Name: "sentinels", Type: driver.StringList, Doc: "instead: host:port of every Sentinel, with master_name"},
		{Name: "cluster", Type: driver.StringList, Doc: "instead: host:port of some nodes of a Redis Cluster"},
		{Name: "master_name", Type: driver.String, Doc: "the name by which the Sentinels know the master"},
		{Name: "sentinel_username", Type: driver.String, Doc: "the ACL user at the Sentinels; they do not get that of Redis"},
		{Name: "sentinel_password", Type: driver.String, Secret: true, Doc: "the password at the Sentinels"},
		{Name: "sentinel_tls", Type: driver.Object, Fields: tlsFields, Doc: "TLS to the Sentinels; absent: as plain text, whatever tls says"},
		{Name: "username", Type: driver.String, Doc: "the ACL user; absent: the default user"},
		{Name: "password", Type: driver.String, Secret: true, Doc: "the password"},
		{Name: "db", Type: driver.Integer, Doc: "the number of the logical database; absent: 0"},
		{Name: "tls", Type: driver.Object, Fields: tlsFields, Doc: "TLS to Redis; {} trusts the system's roots"},
		{Name: "socket_timeout", Type: driver.Duration, Doc: "how long Redis may take to answer; absent: 10s"},
		{Name: "socket_connect_timeout", Type: driver.Duration, Doc: "how long a connection may take to be made; absent: 5s"},
		{
			Name: "ssl_cert_reqs", Type: driver.String, Values: certReqs,
			Doc: "of the server's certificate with TLS: required, that an authority vouches for it and it names the host; optional, the first alone; none, nothing; absent: required",
		},
	}}
}

// read reads settings and checks what a schema cannot say.
func read(raw []byte) (*settings, error) {
	s := &settings{}
	if len(raw) > 0 {
		if problems := Schema().Check(raw); len(problems) > 0 {
			return nil, refusal(problems[0])
		}
		if err := json.NewDecoder(bytes.NewReader(raw)).Decode(s); err != nil {
			return nil, wrong("", "the settings cannot be read: %v", err)
		}
	}
	for _, check := range []func() error{s.checkPlace, s.checkSentinels, s.checkCluster, s.checkAddress, s.checkTimeouts, s.checkReqs} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	if s.DB < 0 || s.DB > MaxDB {
		return nil, wrong("db", "%d is none: want 0 to %d", s.DB, MaxDB)
	}
	return s, nil
}

// wrong names the setting and what is wrong with it.
func wrong(path, format string, args ...any) error {
	problem := &driver.SettingError{Problem: job.Errorf(job.Invalid, format, args...).Message}
	if path != "" {
		problem.Path = strings.Split(path, ".")
	}
	return refusal(problem)
}

func refusal(problem *driver.SettingError) error {
	return &job.Error{Kind: job.Invalid, Message: problem.Error()}
}

func (s *settings) checkPlace() error {
	var given []string
	for _, place := range []struct {
		name string
		set  bool
	}{{"address", s.Address != ""}, {"url", s.URL != ""}, {"sentinels", s.Sentinels != nil}, {"cluster", s.Cluster != nil}} {
		if place.set {
			given = append(given, place.name)
		}
	}
	switch {
	case len(given) > 1:
		return wrong("", "%s are given: want one of them", strings.Join(given, " and "))
	case len(given) == 0:
		s.Address = defaultAddress
	}
	return nil
}

func (s *settings) checkTimeouts() error {
	for _, timeout := range []struct {
		name, text string
		to         *time.Duration
	}{{"socket_timeout", s.SocketTimeout, &s.answer}, {"socket_connect_timeout", s.SocketConnectTimeout, &s.connect}} {
		if timeout.text == "" {
			continue
		}
		d, err := time.ParseDuration(timeout.text)
		if err != nil || d <= 0 || d > MaxTimeout {
			return wrong(timeout.name, "%q is none: want more than 0s and at most %v", timeout.text, MaxTimeout)
		}
		*timeout.to = d
	}
	return nil
}

func (s *settings) checkSentinels() error {
	if s.Sentinels == nil {
		for name, set := range map[string]bool{
			"master_name": s.MasterName != "", "sentinel_username": s.SentinelUsername != "",
			"sentinel_password": s.SentinelPassword != "", "sentinel_tls": s.SentinelTLS != nil,
		} {
			if set {
				return wrong(name, "it is for Sentinels, and there are none: want sentinels = [\"host:26379\", ...] as well")
			}
		}
		return nil
	}
	if s.MasterName == "" {
		return wrong("master_name", "it is missing: want the name by which the Sentinels know the master, often mymaster")
	}
	if s.SentinelUsername != "" && s.SentinelPassword == "" {
		return wrong("sentinel_password", "it is missing: want that of %q", s.SentinelUsername)
	}
	return checkServers("sentinels", s.Sentinels)
}

func (s *settings) checkCluster() error {
	if s.Cluster == nil {
		return nil
	}
	if s.DB != 0 {
		return wrong("db", "Redis Cluster has database 0 only: want 0, got %d", s.DB)
	}
	return checkServers("cluster", s.Cluster)
}

func (s *settings) checkAddress() error {
	switch {
	case s.URL != "":
		return nil // go-redis reads it
	case s.Username != "" && s.Password == "":
		return wrong("password", "it is missing: want that of the user %q", s.Username)
	case s.Address == "":
		return nil
	case isSocket(s.Address) && s.TLS != nil:
		return wrong("tls", "a unix socket has no TLS: want an address host:port, or no tls")
	case isSocket(s.Address):
		return nil
	}
	return checkServer("address", s.Address)
}

func isSocket(address string) bool { return strings.HasPrefix(address, "/") }

func checkServers(name string, list []string) error {
	if len(list) == 0 || len(list) > MaxServers {
		return wrong(name, "there are %d: want 1 to %d", len(list), MaxServers)
	}
	for _, server := range list {
		if err := checkServer(name, server); err != nil {
			return err
		}
	}
	return nil
}

func checkServer(name, server string) error {
	host, port, err := net.SplitHostPort(server)
	if err != nil || host == "" {
		return wrong(name, "%q is no place: want host:port, such as 127.0.0.1:6379", server)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return wrong(name, "the port of %q is none: want 1 to 65535", server)
	}
	return nil
}
