package api

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

// TestDurationThatIsNone checks that what is no duration is not said to be too short.
func TestDurationThatIsNone(t *testing.T) {
	for _, d := range []*durationpb.Duration{{Seconds: 5, Nanos: -1}, {Seconds: 1 << 62}, {Seconds: -1, Nanos: 1}, {Nanos: 1e9}} {
		_, err := fromDuration("timeout", d, time.Second)
		if err == nil || !strings.Contains(err.Error(), "one sign") || strings.Contains(err.Error(), "at least") {
			t.Errorf("%v: got %v, want an error that says what is wrong with its parts", d, err)
		}
	}
	if _, err := fromDuration("timeout", &durationpb.Duration{Nanos: 999999999}, time.Second); err == nil || !strings.Contains(err.Error(), "at least 1s") {
		t.Errorf("got %v, want that it is too short", err)
	}
	if got, err := fromDuration("timeout", &durationpb.Duration{Seconds: 1}, time.Second); err != nil || got != time.Second {
		t.Errorf("got %v, %v", got, err)
	}
}
