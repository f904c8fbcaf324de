package plugin

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/boardd/boardd/sdk/driver"
)

// slowly is a connection to a driver that needs a while for each call.
type slowly struct {
	grpc.ClientConnInterface
	needs time.Duration
}

func (c slowly) Invoke(ctx context.Context, _ string, _, _ any, _ ...grpc.CallOption) error {
	select {
	case <-time.After(c.needs):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestSlowStart: a store that takes minutes to read is opened in the first try, and one that never
// ends is given up.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	for needs, opens := range map[time.Duration]bool{5 * time.Minute: true, time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			if err := configure(t.Context(), slowly{needs: needs}, driver.Config{}); (err == nil) != opens {
				t.Errorf("a driver that needs %v: %v", needs, err)
			}
		})
	}
}
