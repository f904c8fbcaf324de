package api

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// TestNamedWithinTheLimit gives jobs uuids before they are passed on to another server, and does not
// where the request would become larger by that than one may be.
func TestNamedWithinTheLimit(t *testing.T) {
	t.Parallel()
	request := func(size int) *boarddv1.PostJobsRequest {
		m := &boarddv1.PostJobsRequest{Board: "default"}
		for range 1000 {
			m.Jobs = append(m.Jobs, &boarddv1.NewJob{Name: "a"})
		}
		m.Board += strings.Repeat("x", size-proto.Size(m)-3) // the length of the longer name
		return m
	}
	const room = 1000 * uuidBytes
	for size, want := range map[int]bool{100_000: true, MaxRequest - room: true, MaxRequest - room + 10: false, MaxRequest: false} {
		m := request(size)
		if got := proto.Size(m); got > size || got < size-3 {
			t.Fatalf("a request of %d bytes has %d", size, got)
		}
		if named := isNamed(m); named != want || (m.GetJobs()[0].GetUuid() != "") != want || proto.Size(m) > MaxRequest {
			t.Errorf("a request of %d bytes: it is named: %t, want %t, and has %d bytes", size, named, want, proto.Size(m))
		}
	}
	m := request(MaxRequest)
	for _, j := range m.GetJobs() {
		j.Uuid = newUUID()
	}
	if !isNamed(m) {
		t.Error("one whose jobs have uuids is not named")
	}
}
