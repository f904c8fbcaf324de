package api_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/boardd/boardd/host/api"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// mostMemory is what no request takes more of: eight times the largest body, and no
// more than 64 MB.
const mostMemory uint64 = min(8*api.MaxRequest, 64_000_000)

// worst is a request that is made to take memory. Its body is made when its turn comes:
// the race detector never gives back what it has for all of them together.
type worst struct {
	call, kind string
	body       func() []byte
}

// text is a body as it stands there.
func text(body string) func() []byte { return func() []byte { return []byte(body) } }

// packed is a body in gzip.
func packed(body func() []byte) func() []byte {
	return func() []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(body())
		_ = w.Close()
		return b.Bytes()
	}
}

// filled puts as many items between two texts as a request has room for.
func filled(before, item, after string) func() []byte {
	n := (api.MaxRequest - len(before) - len(after)) / len(item)
	return func() []byte { return []byte(before + strings.Repeat(item, n) + strings.TrimPrefix(after, ",")) }
}

// binaryList is a request in binary form that holds nothing but one item of a list, again
// and again.
func binaryList(field protowire.Number, item []byte) func() []byte {
	one := protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), item)
	return func() []byte { return bytes.Repeat(one, api.MaxRequest/len(one)) }
}

// worstRequests are of every form that was found to cost much.
func worstRequests(t *testing.T) map[string]worst {
	t.Helper()
	noise := make([]byte, 4<<20)
	_, _ = rand.Read(noise)
	random := base64.StdEncoding.EncodeToString(noise[:3<<20-1024])
	operations := protowire.AppendBytes(protowire.AppendTag(nil, 10, protowire.BytesType), nil)
	full := &boarddv1.PostJobsRequest{Board: "default"}
	for i := range 900 { // as many items as are allowed at all
		j := &boarddv1.NewJob{Name: "n", Labels: map[string]string{}}
		for k := range 64 {
			j.Labels[fmt.Sprintf("%d-%d", i, k)] = "v"
		}
		full.Jobs = append(full.Jobs, j)
	}
	fullBody, err := proto.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	two := `{"board":"default","jobs":[{"name":"a","details":{"a":"` + random + `"}},{"name":"b","details":{"a":"` + random[:3<<20] + `"}}]}`
	framed := func() []byte { return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(two))), two...) }
	all := map[string]worst{
		"empty jobs":                  {"PostJobs", "json", filled(`{"board":"default","jobs":[{}`, `,{}`, `]}`)},
		"empty jobs in binary":        {"PostJobs", "proto", binaryList(2, nil)},
		"empty uuids":                 {"GetJobs", "json", filled(`{"board":"default","uuids":[""`, `,""`, `]}`)},
		"empty uuids in binary":       {"GetJobs", "proto", binaryList(2, nil)},
		"empty claims":                {"ConsumeJobs", "json", filled(`{"board":"default","claims":[{}`, `,{}`, `]}`)},
		"empty claims in binary":      {"ConsumeJobs", "proto", binaryList(2, nil)},
		"labels":                      {"PostJobs", "json", filled(`{"board":"default","jobs":[{"labels":{"a":""`, `,"b":""`, `}}]}`)},
		"operations":                  {"PostJobs", "json", filled(`{"board":"default","jobs":[{"operations":[{}`, `,{}`, `]}]}`)},
		"operations in binary":        {"PostJobs", "proto", binaryList(2, bytes.Repeat(operations, 512))},
		"after":                       {"PostJobs", "json", filled(`{"board":"default","jobs":[{"after":[{}`, `,{}`, `]}]}`)},
		"statuses in one piece":       {"PostJobs", "proto", binaryList(2, binaryList(11, bytes.Repeat([]byte{1}, 64))()[:1<<20])},
		"all that is allowed":         {"PostJobs", "proto", func() []byte { return fullBody }},
		"two large jobs":              {"PostJobs", "json", text(two)},
		"two large jobs by gRPC":      {"PostJobs", "grpc+json", framed},
		"a book":                      {"PutBook", "json", filled(`{"board":"default","book":{"uuid":"b"},"content":{"a":"`, "x", `"}}`)},
		"a name in escapes":           {"PostJobs", "json", filled(`{"board":"`, `\u00e9`, `"}`)},
		"unknown fields":              {"PostJobs", "proto", binaryList(1000, []byte("x"))},
		"one large unknown field":     {"PostJobs", "proto", binaryList(1000, noise)},
		"one text again and again":    {"PostJobs", "proto", binaryList(1, bytes.Repeat([]byte("x"), 1<<20))},
		"claims with their jobs":      {"ConsumeJobs", "json", text(`{"board":"default","claims":[{"job":{"details":{"a":"` + random + `"}}},{"job":{"details":{"a":"` + random[:3<<20] + `"}}}]}`)},
		"a log entry":                 {"AppendLog", "json", filled(`{"board":"default","entries":[{"message":"`, "x", `"}]}`)},
		"brackets":                    {"PostJobs", "json", filled(`{"board":"default","jobs":`, "[", ``)},
		"a list of nothing, escaped":  {"ListEvents", "json", filled(`{"board":"default","from":"`, `\n`, `"}`)},
		"something after the request": {"CountJobs", "json", filled(`{"board":"default"}`, " ", `x`)},
	}
	return all
}

// peakOf returns how far the memory in use rises while something runs.
func peakOf(run func()) uint64 {
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC() // what pools keep for one cycle
	before, peak := live(), uint64(0)
	ctx, done := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			peak = max(peak, live())
		}
	}()
	run()
	done()
	<-ended
	return max(peak, before) - before
}

// TestMemoryOfTheWorstRequests measures, of each, how much more memory is in use at any
// moment of the call, with the request as it is and in gzip.
func TestMemoryOfTheWorstRequests(t *testing.T) { // alone: others would be measured with it
	s := serve(t)
	requests := worstRequests(t)
	for name, w := range maps.Clone(requests) { // a copy: what is added to a map while it is gone through may come again
		if strings.HasPrefix(name, "empty") || name == "two large jobs" || strings.HasPrefix(name, "one") {
			requests[name+" in gzip"] = worst{w.call, w.kind + " gzip", packed(w.body)}
		}
	}
	largest := uint64(0)
	for name, w := range requests {
		secrets := []string{rootSecret}
		if w.kind == "json gzip" && w.call == "PostJobs" {
			secrets = append(secrets, viewerSecret) // whose request is not even read
		}
		for _, secret := range secrets {
			kind, compressed := strings.CutSuffix(w.kind, " gzip")
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+rpc+w.call, bytes.NewReader(w.body()))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/"+kind)
			r.Header.Set("Authorization", "Bearer "+secret)
			if compressed {
				r.Header.Set("Content-Encoding", "gzip")
			}
			peak := peakOf(func() {
				answer, err := s.client.Do(r)
				if err != nil {
					return // the server closes the connection under what is still sent
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			})
			if peak > mostMemory {
				t.Errorf("%s: %d MB, want at most %d", name, peak/1e6, mostMemory/1e6)
			}
			largest = max(largest, peak)
		}
	}
	t.Logf("the worst of %d requests took %.1f MB", len(requests), float64(largest)/1e6)
}

// headersOnly makes a request whose body never comes.
func (s *server) headersOnly(t *testing.T, secret, call, kind string, size int) (status int, grpcStatus, body string) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(conn, "POST %s%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/%s\r\nContent-Length: %d\r\n\r\n",
		rpc, call, secret, kind, size)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode, answer.Header.Get("Grpc-Status") + answer.Trailer.Get("Grpc-Status"), string(text)
}

// TestRoleBeforeBody: who may not make a call is told before the server has read what it
// asks for, and so is who would send too much.
func TestRoleBeforeBody(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, c := range []struct {
		kind string
		size int
	}{{"json", 1 << 20}, {"proto", 1 << 20}, {"grpc", 1 << 20}, {"json", 10}} { // the last one net/http would read to its end
		status, code, body := s.headersOnly(t, viewerSecret, "PostJobs", c.kind, c.size)
		if code != "7" && !strings.Contains(body, "permission_denied") {
			t.Errorf("%s: %d %s %s", c.kind, status, code, body)
		}
	}
	if status, _, body := s.headersOnly(t, rootSecret, "CountJobs", "json", 40<<20); status != http.StatusBadRequest || !strings.Contains(body, "more than 8388608 bytes") {
		t.Errorf("much more than is allowed: %d %s", status, body)
	}
}
