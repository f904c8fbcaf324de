package plugin

import (
	"os"
	"regexp"
	"strings"
	"testing"

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
