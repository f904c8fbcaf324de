package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
)

// asDriver makes this test's program the driver itself.
const asDriver = "BOARDD_TEST_AS_REDIS_DRIVER"

func TestMain(m *testing.M) {
	if os.Getenv(asDriver) == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start starts the driver as a process, on a server.
func start(t drivertest.T, server *testserver.Redis) driver.Driver {
	d, _ := launch(t, server)
	return d
}

// launch does, and returns the process too.
func launch(t drivertest.T, server *testserver.Redis) (driver.Driver, *plugin.Process) {
	self, err := os.Executable()
	if err != nil {
		t.Fatalf("%v", err)
	}
	settings, err := json.Marshal(map[string]string{"address": server.Addr})
	if err != nil {
		t.Fatalf("%v", err)
	}
	p, err := plugin.Start(t.Context(), plugin.Command{Path: self, Env: []string{asDriver + "=1"}})
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(p.Kill)
	d, err := p.Open(t.Context(), driver.Config{Settings: settings})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return d, p
}

func TestConformanceProcess(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true})
	drivertest.Run(t, drivertest.Harness{
		Open:  func(t drivertest.T) driver.Driver { return start(t, server) },
		Store: func(t drivertest.T) func() driver.Driver { return func() driver.Driver { return start(t, server) } },
		Hosts: func(t drivertest.T) func() (driver.Driver, error) {
			return func() (driver.Driver, error) { return start(t, server), nil }
		},
		Forgetful: func(name string) (driver.BoardSpec, int) {
			return driver.BoardSpec{Name: name, Settings: []byte(`{"events":16}`)}, 16
		},
	})
}

// TestLargePostings: postings of another program that are larger than boardd would make them, or
// whose details are as JSON, come through the driver's messages, or are said to be too large.
func TestLargePostings(t *testing.T) {
	t.Parallel()
	const (
		mebi            = 1 << 20
		ofText, ofBytes = 0xdb, 0xc6
	)
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	d, p := launch(t, server)
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Settings: []byte(`{"namespace":"n"}`)}); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		name     string
		kind     byte // of the value in msgpack: with a length of 32 bits
		value    string
		encoding job.Encoding
		corrupt  bool
	}{
		{"as large in JSON", ofText, strings.Repeat("a", 5*mebi), job.JSON, false},
		{"six times as large in JSON", ofText, strings.Repeat("\x01", 3*mebi), job.Msgpack, false},
		{"nearly too large", ofBytes, strings.Repeat("\x00", 12*mebi-1000), job.Msgpack, false},
		{"too large", ofBytes, strings.Repeat("\x00", 12*mebi), job.Msgpack, true},
	} {
		id := job.ID{byte(i + 1)}
		details := postLarge(t, server, id, append(binary.BigEndian.AppendUint32([]byte{c.kind}, uint32(len(c.value))), c.value...))
		r := d.Apply(t.Context(), "b", []driver.Op{{Kind: driver.Claim, Request: [16]byte(id), Claim: &driver.ClaimSpec{
			Owner: "w", Lease: time.Hour, Count: 1, Candidates: []driver.Candidate{{Job: id, Nonce: [16]byte(id)}}, Parts: driver.Details,
		}}})[0]
		list, err := d.Read(t.Context(), "b", []job.ID{id}, driver.Details)
		if r.Kind != job.NoKind || err != nil {
			t.Fatalf("%s: a claim: %v, %s; a read: %v", c.name, r.Kind, r.Message, err)
		}
		if c.corrupt {
			if len(r.Claims) != 0 || len(r.Skipped) != 1 || r.Skipped[0].Kind != job.Corrupt || !strings.Contains(list[0].Corrupt, "want at most") {
				t.Errorf("%s: the claim answers %d claims, the job is read as corrupt: %q", c.name, len(r.Claims), list[0].Corrupt)
			}
			continue
		}
		if len(r.Claims) != 1 {
			t.Errorf("%s: not claimed", c.name)
			continue
		}
		for _, got := range []driver.Posting{r.Claims[0].Record.Posting, list[0].Posting} {
			if got.Encoding != c.encoding || c.encoding == job.Msgpack && !bytes.Equal(got.Details, details) {
				t.Errorf("%s: %d bytes of %v, want %v", c.name, len(got.Details), got.Encoding, c.encoding)
			}
		}
	}
	select {
	case <-p.Faulty():
		t.Errorf("the driver broke its contract: %v", p.Fault())
	default:
	}
}

// postLarge posts a job as TaskFlow does, and returns its details.
func postLarge(t *testing.T, server *testserver.Redis, id job.ID, value []byte) []byte {
	t.Helper()
	details := append([]byte{0x81, 0xa1, 'a'}, value...) // a map of one, whose key is a
	small, err := taskflow.EncodeRedis(&taskflow.Posting{ID: id, Name: "large", CreatedAt: time.Now(), Encoding: job.Msgpack, Details: []byte{0x81, 0xa1, 'a', 0xa6, 'v', 'a', 'l', 'u', 'e', 's'}})
	if err != nil {
		t.Fatal(err)
	}
	posting := bytes.Replace(small, []byte("\x81\xa1a\xa6values"), details, 1)
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer c.Close()
	if err := c.HSet(t.Context(), "n:listings", id.String(), posting).Err(); err != nil {
		t.Fatal(err)
	}
	return details
}

// TestKilledDriver kills the driver's process under load. What it acknowledged
// stays, and what is repeated by the next one is answered as it was.
func TestKilledDriver(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true})
	spec := driver.BoardSpec{Name: "b"}
	var d driver.Driver
	var kill func()
	begin := func() {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		p, err := plugin.Start(t.Context(), plugin.Command{Path: self, Env: []string{asDriver + "=1"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		settings, _ := json.Marshal(map[string]string{"address": server.Addr})
		if d, err = p.Open(t.Context(), driver.Config{Settings: settings}); err != nil {
			t.Fatal(err)
		}
		status, err := d.OpenBoard(t.Context(), spec)
		if err != nil || status.Loss != "" {
			t.Fatalf("OpenBoard: loss %q, %v", status.Loss, err)
		}
		spec.Witness, kill = status.Witness, p.Kill
	}
	begin()
	acknowledged := map[job.ID]bool{}
	for round := range 5 {
		ops := make([]driver.Op, 128)
		for i := range ops {
			p := &driver.Posting{ID: job.ID{byte(round + 1), byte(i), 1}, Name: "j", Details: []byte(`{}`), Digest: [16]byte{1}}
			ops[i] = driver.Op{Kind: driver.Post, Job: p.ID, Posting: p, Request: [16]byte(p.ID)}
		}
		done := make(chan []driver.Result, 1)
		go func(d driver.Driver) { done <- d.Apply(t.Context(), "b", ops) }(d)
		kill()
		for i, r := range <-done {
			if r.Kind == job.NoKind {
				acknowledged[ops[i].Job] = true
			} else if r.Kind != job.OutcomeUnknown && r.Kind != job.Unavailable {
				t.Errorf("an op whose driver was killed: %v, %s", r.Kind, r.Message)
			}
		}
		begin()
		for i, r := range d.Apply(t.Context(), "b", ops) {
			if r.Kind != job.NoKind {
				t.Errorf("op %d again: %v, %s", i, r.Kind, r.Message)
			}
			if acknowledged[ops[i].Job] && !r.Repeated {
				t.Errorf("op %d was acknowledged, and is done again", i)
			}
		}
	}
	if counts, err := d.Count(t.Context(), "b"); err != nil || counts.Open != 5*128 {
		t.Errorf("%d jobs are open, %v: want %d", counts.Open, err, 5*128)
	}
}
