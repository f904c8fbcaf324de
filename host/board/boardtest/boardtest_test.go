package boardtest_test

import (
	"log/slog"
	"testing"

	"github.com/boardd/boardd/host/board/boardtest"
	"github.com/boardd/boardd/plugins/embedded"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	boardtest.Run(t, boardtest.Harness{Open: opener(memdriver.Program(), "{}")})
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	boardtest.Run(t, boardtest.Harness{Open: opener(embedded.Program(), "{}")})
}

// opener opens a store of its own for each test.
func opener(p driver.Program, settings string) func(t *testing.T) driver.Driver {
	return func(t *testing.T) driver.Driver {
		t.Helper()
		d, err := p.Open(t.Context(), driver.Config{Settings: []byte(settings), DataDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		return d
	}
}
