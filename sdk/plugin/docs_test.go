package plugin

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// TestDocs keeps docs/writing-a-driver.md and this package together.
func TestDocs(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/writing-a-driver.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	words := []string{"`" + CookieName + "`", "`" + CookieValue + "`", "`" + LogLevelName + "`", "`" + kindTrailer + "`", pb.Driver_ServiceDesc.ServiceName}
	for _, name := range hostVariables {
		words = append(words, "`"+name+"`")
	}
	for _, m := range pb.Driver_ServiceDesc.Methods {
		words = append(words, "`"+m.MethodName+"`")
	}
	for _, s := range pb.Driver_ServiceDesc.Streams {
		words = append(words, "`"+s.StreamName+"`")
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("the document does not say %s", word)
		}
	}
	for _, only := range regexp.MustCompile(`--only ([a-z/-]+)`).FindAllStringSubmatch(text, -1) {
		known := func(name string) bool { return name == only[1] || strings.HasPrefix(name, only[1]+"/") }
		if !slices.ContainsFunc(drivertest.Names(), known) {
			t.Errorf("the document names checks %q, and there are none", only[1])
		}
	}
	lines := regexp.MustCompile(`(?m)^    (\d.*)$`).FindAllStringSubmatch(text, -1)
	if len(lines) != 1 {
		t.Fatalf("the document has %d handshakes, want 1", len(lines))
	}
	if err := checkHandshake(lines[0][1]+"\n", "/tmp/boardd-1234"); err != nil {
		t.Errorf("the document's handshake is refused: %v", err)
	}
}

// TestHandshakes has what go-plugin would take and this host does not.
func TestHandshakes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"1|1|unix|/s/d.sock|grpc|":          "",
		"1|1|unix|/s/d.sock|grpc||true":     "",
		"1|1|unix|/s/d.sock|grpc":           "",
		"":                                  "no handshake",
		"hello":                             "no handshake",
		"2|1|unix|/s/d.sock|grpc|":          "version \"2\" of go-plugin",
		"1|2|unix|/s/d.sock|grpc|":          "version \"2\" of the driver protocol",
		"1|x|unix|/s/d.sock|grpc|":          "version \"x\"",
		"1|1|tcp|127.0.0.1:7|grpc|":         "\"tcp\"",
		"1|1|unix|/s/d.sock|netrpc|":        "\"netrpc\"",
		"1|1|unix|/other/d.sock|grpc|":      "not in the folder",
		"1|1|unix|/s/../other/d.sock|grpc|": "not in the folder",
		"1|1|unix|/s/deeper/d.sock|grpc|":   "not in the folder",
		"1|1|unix|d.sock|grpc|":             "not in the folder",
	} {
		err := checkHandshake(line, "/s")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want %q", line, err, want)
		}
	}
}

// TestProtocolVersions checks what a driver of another protocol is told, by hosts
// that accept one version or several.
func TestProtocolVersions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		offered  string
		accepted []int
		want     []string
	}{
		{"1", []int{1}, nil},
		{"1", []int{1, 2}, nil},
		{"2", []int{1, 2}, nil},
		{"3", []int{1, 2}, []string{`version "3"`, "speaks 1 2:", "a newer boardd"}},
		{"1", []int{2, 3}, []string{`version "1"`, "speaks 2 3:", "a newer release of the driver"}},
		{"0", []int{1}, []string{`version "0"`, "speaks 1:", "a newer release of the driver"}},
		{"one", []int{1}, []string{`version "one"`, "speaks 1:", "one of these numbers"}},
	} {
		err := checkProtocol(test.offered, test.accepted)
		if (err == nil) != (test.want == nil) {
			t.Errorf("%q, where %v are accepted: %v", test.offered, test.accepted, err)
		}
		for _, want := range test.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%q, where %v are accepted: %v; want %q in it", test.offered, test.accepted, err, want)
			}
		}
	}
	if !slices.Contains(accepted, 1) {
		t.Errorf("the host accepts %v: want 1 among them, which programs of others speak", accepted)
	}
	if !slices.Contains(accepted, Protocol) || !slices.IsSorted(accepted) {
		t.Errorf("the host accepts %v: want %d, which this SDK speaks, among them, and the lowest first", accepted, Protocol)
	}
}

// FuzzHandshake and FuzzLogLine feed what a stranger prints.
func FuzzHandshake(f *testing.F) {
	f.Add("1|1|unix|/s/d.sock|grpc|")
	f.Fuzz(func(t *testing.T, line string) {
		if err := checkHandshake(line, "/s"); err != nil && len(err.Error()) > 1<<10 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	})
}

func FuzzLogLine(f *testing.F) {
	for _, line := range []string{`{"@level":"info","@message":"m","@timestamp":"2026-01-02T03:04:05.000000Z","k":[1]}`, `{"@message":7}`, "[WARN] x", "panic: x", "{}"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		log := &records{}
		relay := newLogRelay(log.logger())
		relay.line([]byte(line))
		relay.flush()
		if got := log.String(); strings.Count(got, "\n") > 1 || len(got) > 16*maxLogLine {
			t.Errorf("%d lines, %d bytes", strings.Count(got, "\n"), len(got))
		}
	})
}
