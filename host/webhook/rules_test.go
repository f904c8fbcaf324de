package webhook

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// TestFlaws: each limit holds at its edge, and everything that is wrong is found at once.
func TestFlaws(t *testing.T) {
	t.Parallel()
	secret, _ := NewSecret()
	networks := func(n int) (list []netip.Prefix) {
		for i := range n {
			list = append(list, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 0}), 16))
		}
		return list
	}
	for _, test := range []struct {
		name   string
		change func(*Hook)
		fields []string
	}{
		{"nothing", func(*Hook) {}, nil},
		{"everything missing", func(h *Hook) { *h = Hook{Board: "jobs"} }, []string{"url", "secrets", "events", "deliveries"}},
		{"as many secrets", func(h *Hook) { h.Secrets = slices.Repeat(secret, MaxSecrets) }, nil},
		{"too many secrets", func(h *Hook) { h.Secrets = slices.Repeat(secret, MaxSecrets+1) }, []string{"secrets"}},
		{"as many networks", func(h *Hook) { h.Networks = networks(MaxNetworks) }, nil},
		{"too many networks", func(h *Hook) { h.Networks = networks(MaxNetworks + 1) }, []string{"networks"}},
		{"the shortest", func(h *Hook) { h.Waiting, h.Timeout = MinWaiting, MinTimeout }, nil},
		{"too short", func(h *Hook) { h.Waiting, h.Timeout = MinWaiting-1, MinTimeout-1 }, []string{"oldestWaiting", "timeout"}},
		{"the longest", func(h *Hook) { h.Waiting, h.Timeout = MaxWaiting, MaxTimeout }, nil},
		{"too long", func(h *Hook) { h.Waiting, h.Timeout = MaxWaiting+1, MaxTimeout+1 }, []string{"oldestWaiting", "timeout"}},
		{"no events but waiting", func(h *Hook) { h.Events, h.Waiting = nil, time.Hour }, nil},
		{"no events", func(h *Hook) { h.Events = nil }, []string{"events"}},
		{"no such event", func(h *Hook) { h.Events = []Kind{Waiting} }, []string{"events"}},
		{"itself", func(h *Hook) { h.Deliveries = "jobs" }, []string{"deliveries"}},
		{"the longest address", func(h *Hook) { h.URL += strings.Repeat("a", MaxURL-len(h.URL)) }, nil},
		{"too long an address", func(h *Hook) { h.URL += strings.Repeat("a", MaxURL+1-len(h.URL)) }, []string{"url"}},
	} {
		h := Hook{Board: "jobs", Name: "tell", URL: "https://example.com/", Secrets: secret, Events: []Kind{Ended}, Deliveries: "hooks"}
		test.change(&h)
		var fields []string
		for _, flaw := range h.Flaws() {
			fields = append(fields, flaw.Field)
		}
		if !slices.Equal(fields, test.fields) {
			t.Errorf("%s: %v, want %v", test.name, h.Flaws(), test.fields)
		}
		if err := h.Check(); (err == nil) != (test.fields == nil) || err != nil && (job.KindOf(err) != job.Invalid || !strings.HasPrefix(job.MessageOf(err), test.fields[0]+": ")) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
