package main

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/boardd/boardd/host/config"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
)

// connect makes the client that the flags describe. patience is how long a call
// is repeated while no server is reachable.
func (p *program) connect(patience time.Duration) (*client.Client, error) {
	c, err := client.New(client.Config{
		Addr: strings.Join(p.addrs, ","), Token: p.token, TokenFile: p.tokenFile, Tenant: p.tenant,
		CAFile: p.caFile, CertFile: p.certFile, KeyFile: p.keyFile, RetryFor: patience,
	})
	if err != nil {
		return nil, usagef("%v", err)
	}
	return c, nil
}

// impatient is for commands that somebody waits for: a restarting server is
// given the time to come back, and no more.
const impatient = 2 * time.Second

// onBoard makes the client and returns its board. done closes the connections.
func (p *program) onBoard() (b *client.Board, done func(), err error) {
	c, err := p.connect(impatient)
	if err != nil {
		return nil, nil, err
	}
	return c.Board(p.board), c.Close, nil
}

// uuids checks that args are uuids, at least one where that is demanded.
func uuids(args []string, demanded bool) error {
	if len(args) == 0 && demanded {
		return usagef("which job? Give at least one uuid")
	}
	for _, arg := range args {
		if _, err := job.ParseID(arg); err != nil {
			return usagef("%v", err)
		}
	}
	return nil
}

// labels reads k=v arguments.
func labels(flag string, pairs []string) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	m := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usagef("--%s %q: want KEY=VALUE", flag, pair)
		}
		if _, twice := m[key]; twice {
			return nil, usagef("--%s: the key %q is given twice", flag, key)
		}
		m[key] = value
	}
	return m, nil
}

// named is a flag that names something. Nothing is no name: from a script whose variable is
// empty it would have a job posted twice that is to be posted once.
type named string

func (n *named) Type() string   { return "string" }
func (n *named) String() string { return string(*n) }

func (n *named) Set(s string) error {
	if s == "" {
		return errors.New("want a text that is not empty, or leave the flag out")
	}
	*n = named(s)
	return nil
}

// duration is a flag that takes 5m, 72h or 0.5s. nil in set says that it was not
// given.
type duration struct{ set *time.Duration }

func (d *duration) Type() string { return "duration" }
func (d *duration) String() string {
	if d.set == nil {
		return ""
	}
	return d.set.String()
}

func (d *duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if err == nil && v < 0 {
		return fmt.Errorf("%q is negative: want 0s or more", s)
	}
	if config.Overlong(s) {
		return fmt.Errorf("%q is longer than any duration may be, 2562047h", s)
	}
	if err != nil {
		return fmt.Errorf("%q is not a duration: want a number with a unit, such as 30s, 5m or 72h", s)
	}
	d.set = &v
	return nil
}

// proto returns the duration, or nil where it was not given.
func (d *duration) proto() *durationpb.Duration {
	if d.set == nil {
		return nil
	}
	return durationpb.New(*d.set)
}

// value returns the duration, or 0 where it was not given.
func (d *duration) value() time.Duration {
	if d.set == nil {
		return 0
	}
	return *d.set
}

// moment is a flag that takes a time, or a duration from now on.
type moment struct{ set *time.Time }

func (m *moment) Type() string { return "time|duration" }
func (m *moment) String() string {
	if m.set == nil {
		return ""
	}
	return m.set.Format(time.RFC3339)
}

func (m *moment) Set(s string) error {
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		at := time.Now().Add(d)
		m.set = &at
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return fmt.Errorf("%q is neither a time such as 2030-01-31T08:00:00Z nor a duration such as 5m or 720h, which is 30 days", s)
	}
	m.set = &at
	return nil
}

func (m *moment) proto() *timestamppb.Timestamp {
	if m.set == nil {
		return nil
	}
	return timestamppb.New(*m.set)
}

// past is a flag that takes a time, or a duration before now.
type past struct{ moment }

func (m *past) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return m.moment.Set(s)
	}
	at := time.Now().Add(-d)
	m.set = &at
	return nil
}

// priority reads the name of a priority in any case; empty is none.
func priority(s string) (boarddv1.Priority_Enum, error) {
	if s == "" {
		return boarddv1.Priority_UNSPECIFIED, nil
	}
	n, err := enum("--priority", s, boarddv1.Priority_Enum_value, "UNSPECIFIED")
	return boarddv1.Priority_Enum(n), err
}

// states reads the names of states in any case.
func states(names []string) ([]boarddv1.State_Enum, error) {
	var list []boarddv1.State_Enum
	for _, name := range names {
		n, err := enum("--state", name, boarddv1.State_Enum_value, "UNKNOWN")
		if err != nil {
			return nil, err
		}
		list = append(list, boarddv1.State_Enum(n))
	}
	return list, nil
}

// enum reads a name in any case, with - for _ if that is easier to type. The one
// that stands for no value is not to be given.
func enum(flag, given string, values map[string]int32, none string) (int32, error) {
	name := strings.ReplaceAll(strings.ToUpper(given), "-", "_")
	if n, ok := values[name]; ok && name != none {
		return n, nil
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(values)), func(s string) bool { return s == none })
	slices.SortFunc(names, func(a, b string) int { return int(values[a] - values[b]) })
	return 0, usagef("%s %q: want one of %s%s", flag, given, strings.Join(names, ", "), nearest.Hint(name, names))
}

// joined writes labels as they are given, in the order of their keys.
func joined(m map[string]string) string {
	var pairs []string
	for _, key := range sortedKeys(m) {
		pairs = append(pairs, key+"="+m[key])
	}
	return strings.Join(pairs, " ")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// getenv returns a variable of the environment, or "".
func (p *program) getenv(name string) string {
	value, _ := p.env(name)
	return value
}

// splitList takes apart what the environment lists as PATH does.
func splitList(s string) []string {
	return slices.DeleteFunc(filepath.SplitList(s), func(part string) bool { return part == "" })
}
