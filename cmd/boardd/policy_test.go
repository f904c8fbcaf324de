package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// goTemplate returns the folder of the template in Go. It reads it, so that the
// result of a test is not taken for that of other sources.
func goTemplate(t *testing.T) string {
	t.Helper()
	testneed.Program(t, "go")
	dir := filepath.Join("..", "..", "policies", "templates", "go")
	for _, name := range []string{"gpu.go", "manifest.json"} {
		if _, err := os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// policyTest runs "boardd policy test" in a process of its own, without the race detector,
// with which compiling a policy takes seven times the processor time.
func policyTest(t *testing.T, program string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	c := exec.CommandContext(t.Context(), program, append([]string{"policy", "test"}, args...)...)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// Parameters go to the server with the numbers that were written.
func TestParamFlagsKeepNumbers(t *testing.T) {
	t.Parallel()
	got, err := paramFlags([]string{"n=9007199254740993", "f=1.10", "t=1 2"}, `{"m": {"k": 9007199254740995}}`)
	if want := `{"f":1.10,"m":{"k":9007199254740995},"n":9007199254740993,"t":"1 2"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	for _, wrong := range []string{`{"a":1} {"b":2}`, `[1]`, `null`, `{`} {
		if got, err := paramFlags(nil, wrong); err == nil {
			t.Errorf("the object %s is taken as %s", wrong, got)
		}
	}
}

// A policy in Go runs as a module and natively, and both have to be right; the
// fuel of each case has to be what a file says.
func TestPolicyInGo(t *testing.T) {
	t.Parallel()
	template, dir := goTemplate(t), t.TempDir()
	program := testserver.Build(t, "./cmd/boardd")
	cases, wrong, fuel := filepath.Join(dir, "cases.json"), filepath.Join(dir, "wrong.json"), filepath.Join(dir, "fuel.json")
	write(t, cases, `{"cases": [{"name": "as it is", "worker": {"gpu": "a100"}, "jobs": [{"name": "first"}, {"name": "second", "labels": {"tier": "gold"}}],
		"verdicts": ["allow", "allow"], "order": ["second", "first"]}]}`)
	write(t, wrong, `{"cases": [{"name": "not so", "jobs": [{"name": "first"}], "verdicts": ["deny"]}]}`)
	try := func(code int, want ...string) {
		t.Helper()
		args := append([]string{template}, strings.Fields(want[0])...)
		got, out, errs := policyTest(t, program, args...)
		if got != code {
			t.Errorf("%v: exit code %d, want %d\n%s%s", args, got, code, out, errs)
		}
		for _, pattern := range want[1:] {
			if !regexp.MustCompile(pattern).MatchString(out + errs) {
				t.Errorf("%v: it says nothing like %s:\n%s%s", args, pattern, out, errs)
			}
		}
	}
	try(0, cases+" --golden "+fuel+" --update", `(?m)^1 cases are as they should be$`)
	try(0, cases+" --golden "+fuel)
	try(1, wrong+" --golden "+fuel, `(?m)wrong.json: not so: first: allow, want deny$`, `(?m)wrong.json, natively: not so: first: allow, want deny$`,
		`wrong.json: not so: .*fuel.json has no fuel for this case`, `cases.json: as it is: there is no such case, but .*fuel.json has its fuel`)
	var used map[string]int64
	text, err := os.ReadFile(fuel)
	if err == nil {
		err = json.Unmarshal(text, &used)
	}
	if err != nil || len(used) != 1 || used[cases+": as it is"] == 0 {
		t.Fatalf("the fuel is %v, %v", used, err)
	}
	write(t, fuel, strings.Replace(string(text), ": ", ": 1", 2))
	try(1, cases+" --golden "+fuel)
	try(2, cases+" --update", "--update writes the file that --golden names")
	try(2, cases+" --golden "+filepath.Join(dir, "none.json"), "--update writes it")
}

// What a policy in Go does differently as a module is found: here by the machine
// that it is built for.
func TestPolicyThatDiffers(t *testing.T) {
	t.Parallel()
	testneed.Program(t, "go")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifest.json"), `{"name": "differs", "version": "1", "abi": 1, "kinds": ["ordering"]}`)
	write(t, filepath.Join(dir, "differs.go"), `package main

import (
	"runtime"

	"github.com/boardd/boardd/sdk/policy/guest"
)

func init() {
	guest.Serve(&guest.Policy{Score: func(_ guest.Batch, j guest.Job) int64 {
		if runtime.GOARCH == "wasm" || j.Name() != "last" {
			return 0
		}
		return 1
	}})
}

func main() {}
`)
	cases := filepath.Join(t.TempDir(), "cases.json")
	write(t, cases, `{"cases": [{"name": "in turn", "jobs": [{"name": "first"}, {"name": "last"}], "order": ["first", "last"]}]}`)
	code, out, errs := policyTest(t, testserver.Build(t, "./cmd/boardd"), dir, cases)
	if want := cases + ", natively: in turn: the order is last first, want first last\n"; code != 1 || out != want {
		t.Errorf("exit code %d: %s%s\nwant 1: %s", code, out, errs, want)
	}
}

// A policy in Go that lacks a function which its manifest declares is not built.
func TestPolicyThatLacksAFunction(t *testing.T) {
	t.Parallel()
	testneed.Program(t, "go")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifest.json"), `{"name": "lacks", "version": "1", "abi": 1, "kinds": ["eligibility", "ordering"]}`)
	write(t, filepath.Join(dir, "lacks.go"), `package main

import "github.com/boardd/boardd/sdk/policy/guest"

func init() {
	guest.Serve(&guest.Policy{Eligible: func(guest.Batch, guest.Job) guest.Verdict { return guest.Verdict{Decision: guest.Allow} }})
}

func main() {}
`)
	module := filepath.Join(t.TempDir(), "lacks.wasm")
	out, err := exec.CommandContext(t.Context(), testserver.Build(t, "./cmd/boardd"), "policy", "build", dir, "-f", module).CombinedOutput()
	if want := "the manifest declares ordering, and the policy has no function for it"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("got %v: %s\nwant %s", err, out, want)
	}
	if _, err := os.Stat(module); err == nil {
		t.Error("there is a module all the same")
	}
}
