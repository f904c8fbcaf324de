package docs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// TestProgram holds the pages against the real program.
func TestProgram(t *testing.T) {
	t.Parallel()
	program := testserver.BuildWith(t, []string{"postgres", "redis", "zookeeper"}) // the drivers that the pages configure
	t.Run("cli.md", func(t *testing.T) { generated(t, "cli.md", "commands", commands(t, program)) })
	t.Run("metrics", func(t *testing.T) { generated(t, "operating.md", "metrics", metrics(t, program)) })
	for _, page := range pages(t) {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			runPage(t, program, page)
		})
	}
	t.Run("configurations", func(t *testing.T) {
		t.Parallel()
		for _, page := range allPages(t) {
			checkConfigurations(t, program, page)
		}
	})
}

// serve is the command that the pages start a server with.
const serve = "boardd serve --dev"

// runPage runs the sh blocks of a page, one after the other in one shell and in
// an empty folder, against a server of their own.
func runPage(t *testing.T, program, page string) {
	t.Helper()
	list := blocks(t, page)
	if !slices.ContainsFunc(list, func(b block) bool { return b.language == "sh" }) {
		return
	}
	bash := testneed.Program(t, "bash")
	testneed.Program(t, "curl")
	s := startDev(t, program)
	var script strings.Builder
	script.WriteString("set -euo pipefail\nexec 2>&1\n")
	for i, b := range list {
		if b.language != "sh" {
			continue
		}
		if body := s.here(b.body); strings.TrimSpace(body) != serve {
			script.WriteString(body)
		}
		fmt.Fprintf(&script, "\nprintf '@@@%d\\n'\n", i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, bash, "-c", script.String())
	shell.Dir = t.TempDir()
	shell.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "BOARDD_") }),
		"PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "BOARDD_ADDR="+s.address)
	out, err := shell.Output()
	if err != nil {
		t.Fatalf("the commands of %s fail: %v\n%s", filepath.Base(page), err, out)
	}
	s.comparePage(t, page, list, string(out))
}

// comparePage compares what the sh blocks printed with the text blocks behind
// them.
func (s *devServer) comparePage(t *testing.T, page string, list []block, out string) {
	t.Helper()
	for i, b := range list {
		if b.language != "sh" {
			continue
		}
		printed, rest, _ := strings.Cut(out, fmt.Sprintf("@@@%d\n", i))
		out = rest
		if strings.TrimSpace(s.here(b.body)) == serve {
			printed = s.stdout(t)
		}
		if i+1 == len(list) || list[i+1].language != "text" {
			continue
		}
		if got, want := s.there(printed), strings.ReplaceAll(list[i+1].body, "go run ./cmd/boardd", "boardd"); !alike(got, want) {
			t.Errorf("%s:%d: the block before this one prints something else:\n%s", filepath.Base(page), list[i+1].line, got)
		}
	}
}

// alike compares a program's output with what a page says of it.
func alike(got, want string) bool {
	var pattern strings.Builder
	pattern.WriteString(`^`)
	for line := range strings.Lines(strings.TrimSpace(want)) {
		line = strings.TrimRight(line, " \n")
		if strings.TrimSpace(line) == "…" {
			pattern.WriteString(`(.*\n)*?`)
			continue
		}
		parts := strings.Split(normal(line), "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		pattern.WriteString(strings.Join(parts, `.*?`) + ` *\n`)
	}
	pattern.WriteString(`$`)
	return regexp.MustCompile(pattern.String()).MatchString(normal(strings.TrimSpace(got)) + "\n")
}

// changing is what differs from one run to the next.
var changing = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`"token":"[^"]+"`), `"token":"TOKEN"`},
	{regexp.MustCompile(`boardd-dev-(data-)?\d+`), "boardd-dev-0"},
	{regexp.MustCompile(`(?m) +$`), ""},
}

func normal(text string) string {
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.instead)
	}
	return text
}

// partOfBoard is how a block begins that shows what stands in a board.
var partOfBoard = regexp.MustCompile(`^(ordering|eligibility) \{`)

// configured writes a configuration, and beside it what the pages name, into a new folder.
func configured(t *testing.T, body string) (path string) {
	t.Helper()
	if partOfBoard.MatchString(body) {
		body = "data_dir = \"data\"\nbackend \"main\" {\n  driver = \"embedded\"\n}\nboard \"jobs\" {\n  backend = \"main\"\n" + body + "}\n"
	}
	dir := t.TempDir()
	files := map[string]string{"boardd.hcl": body, "notify.secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"}
	for _, name := range []string{"server.pem", "server.key", "clients.pem", "boardd-ca.pem"} {
		files[name] = "not looked at"
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plugins := filepath.Join(dir, "plugins")
	if err := os.Mkdir(plugins, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sqlite", "sqlite-py"} { // of the examples, and not started
		if err := os.WriteFile(filepath.Join(plugins, name), nil, 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "boardd.hcl")
}

// checkConfigurations checks the hcl blocks of a page.
func checkConfigurations(t *testing.T, program, page string) {
	t.Helper()
	for _, b := range blocks(t, page) {
		if b.language != "hcl" {
			continue
		}
		check := exec.CommandContext(t.Context(), program, "config", "check", "--config", configured(t, b.body))
		for _, name := range regexp.MustCompile(`env\("(\w+)"\)`).FindAllStringSubmatch(b.body, -1) {
			check.Env = append(check.Env, name[1]+"=a-secret-that-is-long-enough-"+name[1])
		}
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s:%d: %v\n%s", page, b.line, err, out)
		}
	}
}

// devServer is a `boardd serve --dev` as a page starts it, but on a free port.
type devServer struct {
	address string
	out     string // the file that its standard output goes to
}

func startDev(t *testing.T, program string) *devServer {
	t.Helper()
	return startDevIn(t, program, filepath.Dir(program)+":"+os.Getenv("PATH"))
}

// startDevIn starts it where a shell looks for programs in path.
func startDevIn(t *testing.T, program, path string, args ...string) *devServer {
	t.Helper()
	dir := t.TempDir()
	s := &devServer{out: filepath.Join(dir, "stdout")}
	out, err := os.Create(s.out)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ready := filepath.Join(dir, "ready")
	var log bytes.Buffer
	process := exec.Command(program, append([]string{"serve", "--dev", "--listen", "127.0.0.1:0", "--ready-file", ready}, args...)...)
	process.Env = append(os.Environ(), "PATH="+path)
	process.Stdout, process.Stderr = out, &log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		_ = process.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // the process tells nobody but the file
		text, err := os.ReadFile(ready)
		if err == nil {
			s.address = strings.TrimSpace(string(text))
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || time.Now().After(deadline) {
			t.Fatalf("the server does not come up: %v", err)
		}
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(s.stdout(t), "worker run"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the server does not say what to try:\n%s", s.stdout(t))
		}
	}
	return s
}

func (s *devServer) stdout(t *testing.T) string {
	t.Helper()
	return read(t, s.out)
}

const defaultAddress = "http://127.0.0.1:7422"

// here turns what a page says into what is right in this test.
func (s *devServer) here(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "go run ./cmd/boardd", "boardd"), defaultAddress, s.address)
}

// there is the way back.
func (s *devServer) there(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "--addr "+s.address+" ", ""), s.address, defaultAddress)
}

// TestSuggestions runs what `boardd serve --dev` says that one can try, where a
// shell finds boardd by its name and where it does not.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	bash := testneed.Program(t, "bash")
	program := testserver.Build(t, "./cmd/boardd")
	usual := filepath.Dir(program) + ":" + os.Getenv("PATH")
	for name, path := range map[string]string{"boardd": usual, program: t.TempDir()} {
		s := startDevIn(t, program, path)
		suggested := 0
		for line := range strings.Lines(s.stdout(t)) {
			if !strings.HasPrefix(line, "  "+name+" ") {
				continue
			}
			suggested++
			shell := exec.CommandContext(t.Context(), bash, "-c", line)
			shell.Env = append(os.Environ(), "PATH="+usual)
			if out, err := shell.CombinedOutput(); err != nil {
				t.Errorf("%s%v\n%s", line, err, out)
			}
		}
		if suggested != 3 {
			t.Errorf("it suggests %d commands that begin with %s, want 3:\n%s", suggested, name, s.stdout(t))
		}
	}
}
