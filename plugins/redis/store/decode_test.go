package store

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestDatetime compares the script's way to write a time with that of package
// taskflow, through leap years, centuries and the ends of months.
func TestDatetime(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	c := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2})
	t.Cleanup(func() { _ = c.Close() })
	_, rest, ok := strings.Cut(boardLua, "-- begin datetime\n")
	function, _, end := strings.Cut(rest, "-- end datetime\n")
	if !ok || !end {
		t.Fatal("lua/board.lua has no marks around datetime")
	}
	text := "local floor = math.floor local time = {ARGV[1], ARGV[2]} local seconds = tonumber(ARGV[1])\n" + function +
		"local nonce = ARGV[3] if nonce == '' then nonce = nil end return datetime(nonce)"
	nonce := [16]byte{1, 0, 255, 'x'}
	at := time.Date(1999, 2, 27, 0, 0, 0, 0, time.UTC)
	for i := range 1500 {
		at = at.Add(time.Duration(i%97)*time.Hour*7 + 26*time.Hour + 3_723_000_457*time.Microsecond*time.Duration(i%3))
		for _, n := range []string{"", string(nonce[:])} {
			want, err := taskflow.EncodeDatetime(at)
			if n != "" {
				want, err = taskflow.EncodeModified(at, nonce)
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Eval(t.Context(), text, nil, at.Unix(), at.Nanosecond()/1000, n).Text()
			if err != nil || got != string(want) {
				t.Fatalf("%v: %x, %v; want %x", at, got, err, want)
			}
		}
	}
	if at.Year() < 2030 {
		t.Errorf("the test ends in %d", at.Year())
	}
}

func FuzzDecodeMeta(f *testing.F) {
	f.Add([]byte{1, 1})
	f.Add(bytes.Repeat([]byte{1}, 200))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, ok := decodeMeta(raw)
		if ok && len(m.status)+len(m.extra)+len(m.owner) > len(raw) {
			t.Errorf("a meta of %d bytes has more in it", len(raw))
		}
		if p, ok := decodePast(raw); ok && len(raw) < 58 {
			t.Errorf("%d bytes are what is left of a job: %+v", len(raw), p)
		}
		if v, ok := decodeFinal(raw); ok && len(v.data)+len(v.status)+len(v.posting) > len(raw) {
			t.Errorf("a final record of %d bytes has more in it", len(raw))
		}
		if m, err := decodeMemory(raw); err == nil && len(raw) > 0 && !bytes.Equal(m.encode(), raw) {
			t.Errorf("the memory %x is written as %x", raw, m.encode())
		}
	})
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add("5-0", "4", []byte{0, 0, 0, 1, 1})
	f.Fuzz(func(t *testing.T, id, first string, raw []byte) {
		e, err := decodeEntry(&redis.XMessage{ID: id, Values: map[string]any{"f": first, "e": string(raw)}})
		if err != nil {
			if job.KindOf(err) != job.Corrupt {
				t.Errorf("an entry that cannot be read is %v", err)
			}
			return
		}
		for i := range e.events {
			if c := e.events[i].change(); c.Record == nil {
				t.Errorf("a change without a record: %+v", c)
			}
		}
	})
}

func FuzzDecodeResult(f *testing.F) {
	f.Add(string(make([]byte, 60)))
	f.Fuzz(func(t *testing.T, raw string) {
		op := driver.Op{Kind: driver.Claim, Claim: &driver.ClaimSpec{}}
		r := decodeResult(raw, &op, scene{})
		if len(r.Claims) > len(raw) || len(r.Skipped) > len(raw) {
			t.Errorf("%d bytes are %d claims and %d others", len(raw), len(r.Claims), len(r.Skipped))
		}
		if p, err := parsePlace(raw); err == nil && fmt.Sprint(p) == "" {
			t.Errorf("%q is a place without a text", raw)
		}
	})
}
