package driver_test

import (
	"testing"

	"github.com/boardd/boardd/sdk/driver"
)

// TestFuller compares servers of one store.
func TestFuller(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		fuller, other driver.Usage
	}{
		{driver.Usage{Used: 9, Limit: 10}, driver.Usage{Used: 80, Limit: 100}},
		{driver.Usage{Used: 1, Limit: 10}, driver.Usage{Used: 80}},
		{driver.Usage{Used: 2}, driver.Usage{Used: 1}},
		{driver.Usage{Used: 1}, driver.Usage{}},
	} {
		if !x.fuller.Fuller(x.other) || x.other.Fuller(x.fuller) || x.fuller.Fuller(x.fuller) {
			t.Errorf("%+v is not fuller than %+v", x.fuller, x.other)
		}
	}
}
