package doctor

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

// TestMixedVersions finds the server of a store that is of another version.
func TestMixedVersions(t *testing.T) {
	t.Parallel()
	d, err := memdriver.Program().Open(t.Context(), driver.Config{Settings: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	for id, version := range map[string]string{"same": "1.2.0", "newer": "1.3.0"} {
		p := catalog.NewPresence(d.Documents(), catalog.Host{ID: id, Version: version}, slog.New(slog.DiscardHandler))
		if _, err := p.Serve(t.Context(), catalog.LocationOf(nil, "t/b"), catalog.Use{Tenant: "default", Board: "b", Settings: map[string]string{"lease": "30s"}}); err != nil {
			t.Fatal(err)
		}
	}
	var found []string
	e := &examination{
		host: host.Config{Version: "1.2.0"}, backend: config.Backend{Name: "store", Driver: "memory"},
		found: func(f Finding) { found = append(found, f.Code+": "+f.Problem) },
	}
	e.versions(t.Context(), d, driver.Info{Name: "memory", Version: "0.9.0"})
	want := []string{
		"driver-version: its driver is memory 0.9.0",
		"mixed-versions: the server newer is boardd 1.3.0, and this is 1.2.0: restart it with this version",
	}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}
