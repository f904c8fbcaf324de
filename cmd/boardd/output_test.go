package main

import (
	"encoding/json"
	"testing"
)

// TestOutputSteersNothing: what others wrote can't steer a terminal, in a table or in JSON,
// and JSON still means the same.
func TestOutputSteersNothing(t *testing.T) {
	t.Parallel()
	const text = "a\u009b31mb\u0085\u007f\u202ec\u2066d\u200fe\u061c\u2028日本é"
	if got, want := printable(text), "a\uFFFD31mb\uFFFD\uFFFD\uFFFDc\uFFFDd\uFFFDe\uFFFD\uFFFD日本é"; got != want {
		t.Errorf("a table has %q, want %q", got, want)
	}
	given := []byte("{\"a\": \"" + text + "\",\r\n\t\"b\": [1]}")
	tame := tameJSON(given)
	for _, r := range string(tame) {
		if steers(r) {
			t.Errorf("JSON has %U", r)
		}
	}
	var got struct{ A string }
	if err := json.Unmarshal(tame, &got); err != nil || got.A != text {
		t.Errorf("%s means %q, %v", tame, got.A, err)
	}
}
