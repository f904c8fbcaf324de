package store

import (
	"testing"

	"github.com/boardd/boardd/sdk/driver"
)

// TestForeignDefault checks to which boards other programs are taken to write.
func TestForeignDefault(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]bool{
		`{}`:                                   false,
		`{"max_jobs":7}`:                       false,
		`{"path":"/taskflow/jobs"}`:            true,
		`{"path":"/boardd/tenant/board/Jobs"}`: false,
		`{"path":"/taskflow/jobs","foreign":false}`: false,
		`{"foreign":true}`:                          true,
	} {
		b, _, err := readBoardSettings(&driver.BoardSpec{Name: "b", Settings: []byte(settings)}, "/boardd")
		if err != nil || *b.Foreign != want {
			t.Errorf("%s: other programs write: %v, %v; want %v", settings, b.Foreign, err, want)
		}
	}
}
