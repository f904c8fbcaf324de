package plugin

import (
	"context"
	"strings"
	"testing"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// measurer is a store that says how much it holds.
type measurer struct {
	*store
	usage driver.Usage
	err   error
}

func (m measurer) Measure(context.Context) (driver.Usage, error) { return m.usage, m.err }

func (m measurer) Health(context.Context) error { return m.err }

// ailing is a store whose health is bad, and that says no more than that.
type ailing struct {
	*store
	err error
}

func (a ailing) Health(context.Context) error { return a.err }

// TestMeasure has what a store says of itself arrive, also when it is full.
func TestMeasure(t *testing.T) {
	t.Parallel()
	full := &job.Error{Kind: job.QuotaExceeded, Message: "there is no room"}
	away := &job.Error{Kind: job.Unavailable, Message: "it is away"}
	for _, x := range []struct {
		name string
		d    driver.Driver
		want driver.Usage
		kind job.Kind
	}{
		{"both", measurer{newStore(driver.Config{}), driver.Usage{Used: 7, Limit: 9}, nil}, driver.Usage{Used: 7, Limit: 9}, job.NoKind},
		{"unknown", measurer{newStore(driver.Config{}), driver.Usage{}, nil}, driver.Usage{}, job.NoKind},
		{"full", measurer{newStore(driver.Config{}), driver.Usage{Used: 9, Limit: 9}, full}, driver.Usage{Used: 9, Limit: 9}, job.QuotaExceeded},
		{"away", measurer{newStore(driver.Config{}), driver.Usage{Used: 9}, away}, driver.Usage{}, job.Unavailable},
		{"says less than nothing", measurer{newStore(driver.Config{}), driver.Usage{Used: -1, Limit: -1}, nil}, driver.Usage{}, job.NoKind},
		{"an older driver", newStore(driver.Config{}), driver.Usage{}, job.NoKind},
		{"an older driver, full", ailing{newStore(driver.Config{}), full}, driver.Usage{}, job.QuotaExceeded},
	} {
		program := storeProgram()
		program.Open = func(context.Context, driver.Config) (driver.Driver, error) { return x.d, nil }
		d, err := Pipe(t.Context(), program, driver.Config{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.(driver.Measurer).Measure(t.Context())
		if got != x.want || job.KindOf(err) != x.kind {
			t.Errorf("%s: %+v, %v; want %+v, %v", x.name, got, err, x.want, x.kind)
		}
		if x.kind == job.QuotaExceeded && !strings.Contains(err.Error(), full.Message) {
			t.Errorf("%s: %v does not say why", x.name, err)
		}
		if health := d.Health(t.Context()); job.KindOf(health) != x.kind {
			t.Errorf("%s: Health is %v, want %v", x.name, health, x.kind)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestHealthOfOlderHosts: a host that does not ask how much a store holds learns from an error
// that it is full, as ever.
func TestHealthOfOlderHosts(t *testing.T) {
	t.Parallel()
	full := &job.Error{Kind: job.QuotaExceeded, Message: "there is no room"}
	d := measurer{newStore(driver.Config{}), driver.Usage{Used: 9, Limit: 9}, full}
	if answer, err := health(t.Context(), d, false); job.KindOf(err) != job.QuotaExceeded || answer.UsedBytes != nil || answer.Full != nil {
		t.Errorf("an older host gets %v, %v; want %v", answer, err, full)
	}
}
