package api

import (
	"testing"

	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
)

// TestPassable holds the calls that can be passed on against the schema: all those of
// BoardService about a board that have one answer, and a few of administrators.
func TestPassable(t *testing.T) {
	t.Parallel()
	methods, of := boardMethods(), 0
	for i := range methods.Len() {
		m := methods.Get(i)
		procedure := "/" + boarddv1connect.BoardServiceName + "/" + string(m.Name())
		want := m.Input().Fields().ByName("board") != nil && !m.IsStreamingServer()
		if _, got := passable[procedure]; got != want {
			t.Errorf("%s can be passed on: %v, want %v", m.Name(), got, want)
		}
		if want {
			of++
		}
	}
	for _, procedure := range []string{boarddv1connect.AdminServiceSimulatePolicyProcedure, boarddv1connect.AdminServiceShadowPolicyProcedure} {
		if passable[procedure] == nil {
			t.Errorf("%s cannot be passed on", procedure)
		}
		of++
	}
	if of == 0 || of != len(passable) {
		t.Errorf("%d calls can be passed on, want the %d of the schema", len(passable), of)
	}
}
