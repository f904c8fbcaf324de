package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

const someUUID = "5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11"

// runIn runs a command line with no server anywhere near it.
func runIn(tb testing.TB, env map[string]string, stdin string, args ...string) (code int, stdout, stderr string) {
	tb.Helper()
	if env == nil {
		env = map[string]string{"BOARDD_ADDR": "http://127.0.0.1:1"}
	}
	var out, errs bytes.Buffer
	p := &program{in: strings.NewReader(stdin), out: &out, err: &errs, env: func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}}
	code = p.run(tb.Context(), args)
	return code, out.String(), errs.String()
}

// Wrong command lines end with 2, before anything is sent, and say what is wrong.
func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wrong := filepath.Join(dir, "wrong.jsonl")
	write(t, wrong, `{"name":"a"}`+"\n\n"+`{"nam":"b"}`+"\n"+`{"name":""}`+"\n"+`not json`+"\n"+`{"name":"c","priority":"HIHG"}`+"\n"+`{"name":"d","details":7}`)
	empty := filepath.Join(dir, "empty")
	write(t, empty, "\n\n")
	for line, want := range map[string]string{
		"":                                             "which command?",
		"plugin check sh --config [1]":                 "--config: want a JSON object",
		"serve --deb":                                  `unknown flag: --deb (did you mean "--dev"?)`,
		"serve --dev --data " + wrong:                  "the folder for the data cannot be made",
		"jobb":                                         `there is no command "jobb" in boardd (did you mean "job"?)`,
		"job":                                          "which command?",
		"job lst":                                      `there is no command "lst" in boardd job (did you mean "list"?)`,
		"schedule create":                              `there is no command "create" in boardd schedule: want one of `,
		"job list --stat x":                            `unknown flag: --stat (did you mean "--state"?); boardd job list --help shows all flags`,
		"job list -o yaml":                             "want table or json",
		"job list --state unclamed":                    `--state "unclamed": want one of UNCLAIMED, CLAIMED, COMPLETE, TRASHED (did you mean "UNCLAIMED"?)`,
		"job list --state UNKNOWN":                     "want one of UNCLAIMED",
		"job list --limit -1":                          "--limit -1: want a number of jobs, or 0 for all",
		"job list a":                                   "list takes no arguments",
		"job count --addr ftp://x":                     `address "ftp://x": want http://HOST:PORT or https://HOST:PORT`,
		"job count --key-file x":                       "a certificate needs its key",
		"job count --ca-file " + empty:                 "no certificate in PEM form",
		"job count --token-file " + empty:              "is empty",
		"job post":                                     "want one NAME, got 0",
		"job post a b":                                 "want one NAME, got 2",
		"job post a --max-attempts 99999999999":        "--max-attempts 99999999999: want a whole number up to 2147483647",
		"job count --addr 127.0.0.1:7422":              `address "127.0.0.1:7422": want http://127.0.0.1:7422, or https://127.0.0.1:7422`,
		"job consume --claims " + dir:                  dir + " is a folder; want the file with what boardd job claim -o json printed",
		"schedule put s -- x":                          "--cron or --every is missing",
		"worker run --concurrency 1001 -- true":        "--concurrency must be 1 to 1000, got 1001",
		"job post a --priority hi":                     `--priority "hi": want one of VERY_HIGH, HIGH, NORMAL, LOW, VERY_LOW`,
		"job post a --label x":                         `--label "x": want KEY=VALUE`,
		"job post a --label x=1 --label x=2":           `--label: the key "x" is given twice`,
		"job post a --details [1]":                     `--details: want a JSON object such as {"path":"/a.png"}, got array`,
		"job post a --details null":                    "got null",
		"job post a --details @" + dir + "/none":       "no such file",
		"job post a --uuid 17":                         `"17" is not a uuid`,
		"job post a --board=":                          `invalid argument "" for "--board" flag: want a text that is not empty`,
		"job post a --uuid=":                           `invalid argument "" for "--uuid" flag: want a text that is not empty`,
		"job post a --unique-key=":                     `invalid argument "" for "--unique-key" flag: want a text that is not empty`,
		"job post a --batch=":                          `invalid argument "" for "--batch" flag: want a text that is not empty`,
		"job claim --owner w --request-id=":            `invalid argument "" for "--request-id" flag: want a text that is not empty`,
		"job post a --not-before soon":                 `"soon" is neither a time such as`,
		"job post a --from x":                          "--from names the jobs",
		"job post --from " + empty:                     "holds no jobs",
		"job post --from " + dir + "/none":             "no such file",
		"job get":                                      "which job? Give at least one uuid",
		"job get x":                                    `"x" is not a uuid`,
		"job wait " + someUUID + " --timeout 5":        `"5" is not a duration`,
		"job wait " + someUUID + " --timeout 9999999h": `"9999999h" is longer than any duration may be`,
		"job wait " + someUUID + " --timeout=-5s":      `"-5s" is negative: want 0s or more`,
		"job claim":                                    "--owner is missing",
		"job claim --owner w --max 0":                  "--max 0: want at least 1",
		"job claim --owner w --lease 5m --no-expiry":   "want only one of --lease and --no-expiry",
		"job consume " + someUUID:                      "which claim? Give --claim-token",
		"job consume --claims -":                       "standard input: object 1",
		"job consume --claim-token t":                  "which job?",
		"job consume --claim-token t,u " + someUUID:    "1 jobs and 2 tokens",
		"job consume --claims x --owner w":             "want only one of --claims and --owner",
		"job explain":                                  "want one uuid, got 0",
		"job watch a b":                                "want one uuid or none, got 2",
		"board pause a b":                              "want one board, got 2",
		"bench --batch 0":                              "--batch from 1 to 1000",
		"worker run":                                   "which command? Write it after --",
		"worker run --ahead -1 -- sh":                  "--ahead must be 0 to 1000, got -1",
		"worker run --ahead 1001 -- sh":                "--ahead must be 0 to 1000, got 1001",
		"worker run -- boardd-no-such-program":         "the command cannot be run",
		"worker run --concurrency 0 -- true":           "--concurrency must be 1 to 1000, got 0",
		"serve":                                        "what to serve?",
		"serve --log-level loud --dev":                 `--log-level "loud"`,
		"serve --dev --listen 0.0.0.0:0 --data " + dir: "with --dev the server listens on loopback only",
		"config check":                                 "which files?",
		"plugin check":                                 "which program?",
		"plugin list --plugin-dir " + dir + "/none":    "no such file",
	} {
		code, stdout, stderr := runIn(t, nil, "{", strings.Fields(line)...)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("boardd %s: code %d, %q, want 2 and %q (%s)", line, code, stderr, want, stdout)
		}
	}
	if code, _, stderr := runIn(t, nil, "", "job", "post", ""); code != exitUsage || !strings.Contains(stderr, "NAME: want a text that is not empty") {
		t.Errorf("a job without a name: code %d, %q", code, stderr)
	}
	code, _, stderr := runIn(t, nil, "", "job", "post", "--from", wrong)
	want := `boardd: WRONG:3: nam: there is no such field (did you mean "name"?)
boardd: WRONG:4: name: want the name of the job
boardd: WRONG:5: `
	if got := strings.ReplaceAll(stderr, wrong, "WRONG"); code != exitUsage || !strings.HasPrefix(got, want) || !strings.Contains(got, "nothing was posted") {
		t.Errorf("wrong lines: code %d\n%s", code, got)
	}
}

// What answers there and is no boardd is asked about: PostgreSQL hangs up, others say something.
func TestNoBoardd(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"", "E"} {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 64<<10))
				_, _ = io.WriteString(c, answer)
				_ = c.Close()
			}
		}()
		code, _, stderr := runIn(t, nil, "", "job", "list", "--addr", "http://"+listener.Addr().String(), "--token", "x")
		if code != exitUnreachable || !strings.Contains(stderr, "; is it a boardd that listens there?") {
			t.Errorf("the answer %q: code %d, %q, want 3 and the question whether it is a boardd", answer, code, stderr)
		}
	}
}

func noEnv(string) (string, bool) { return "", false }

func write(tb testing.TB, path, content string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// Every command has a help text with an example, groups of commands included.
func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	p := &program{in: strings.NewReader(""), out: io.Discard, err: io.Discard, env: noEnv}
	var visit func(path string)
	visited := 0
	visit = func(path string) {
		command, _, err := p.root().Find(strings.Fields(path))
		if err != nil {
			t.Fatal(err)
		}
		for _, sub := range command.Commands() {
			if sub.Name() == "help" || sub.Name() == "completion" {
				continue
			}
			if !strings.Contains(sub.Example, "boardd "+strings.TrimSpace(path+" "+sub.Name())) {
				t.Errorf("boardd %s %s: the example is %q", path, sub.Name(), sub.Example)
			}
			if sub.Short == "" {
				t.Errorf("boardd %s %s has no help", path, sub.Name())
			}
			visited++
			visit(strings.TrimSpace(path + " " + sub.Name()))
		}
	}
	visit("")
	if visited < 30 {
		t.Errorf("%d commands were seen, want all", visited)
	}
}

func TestNotReachable(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"job count", "job post a", "job claim --owner w", "board list", "worker run --until-empty true"} {
		code, _, stderr := runIn(t, nil, "", strings.Fields(line)...)
		if code != exitUnreachable || !strings.Contains(stderr, "is a boardd running?") {
			t.Errorf("boardd %s: code %d, %q", line, code, stderr)
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	item := func(k job.Kind) error { return job.Errorf(k, "x") }
	for name, test := range map[string]struct {
		err  error
		code int
	}{
		"refused":             {item(job.PermissionDenied), exitRefused},
		"unreachable":         {item(job.Unavailable), exitUnreachable},
		"unknown":             {item(job.OutcomeUnknown), exitUnknown},
		"items refused":       {client.Failures{nil, item(job.NotFound)}, exitRefused},
		"item unavailable":    {client.Failures{item(job.Unavailable)}, exitRefused},
		"one item is unknown": {client.Failures{item(job.NotFound), item(job.OutcomeUnknown)}, exitUnknown},
		"usage":               {usagef("x"), exitUsage},
		"nothing":             {nothing("x"), exitNothing},
		"findings":            {findings("x"), exitRefused},
		"done":                {nil, exitDone},
	} {
		p := &program{err: io.Discard, started: true}
		if got := p.exit(t.Context(), test.err); got != test.code {
			t.Errorf("%s: %d, want %d", name, got, test.code)
		}
	}
	p := &program{err: io.Discard, started: true}
	if got := p.exit(t.Context(), p.reading(client.Failures{item(job.NotFound), nil})); got != exitNothing {
		t.Errorf("looking for what is not there: %d, want 4", got)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(signaled{})
	if got := p.exit(ctx, &job.Error{Kind: job.Interrupted, Err: ctx.Err()}); got != exitInterrupted {
		t.Errorf("interrupted: %d, want 130", got)
	}
}

// What a program on the other end writes does not steer the terminal.
func TestComplaintsArePrintable(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	p := &program{err: &errs, started: true}
	p.exit(t.Context(), client.Failures{&job.Error{Kind: job.NotOwner, Message: "held\x1b[2J", Owner: "a\x07b"}})
	if want := "boardd: NOT_OWNER: held\uFFFD[2J (held by a\uFFFDb)\n"; errs.String() != want {
		t.Errorf("%q, want %q", errs.String(), want)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{"BOARDD_ADDR": "http://env,http://env2", "BOARDD_TOKEN": "env", "BOARDD_TOKEN_FILE": "envfile", "BOARDD_BOARD": "envboard"}
	for line, want := range map[string]program{
		"version":                 {addrs: []string{"http://env", "http://env2"}, token: "env", tokenFile: "envfile", board: "envboard"},
		"version --addr http://a": {addrs: []string{"http://a"}, token: "env", tokenFile: "envfile", board: "envboard"},
		"version --addr http://a --addr http://b,http://c": {addrs: []string{"http://a", "http://b", "http://c"}, token: "env", tokenFile: "envfile", board: "envboard"},
		"version --token-file f":                           {addrs: []string{"http://env", "http://env2"}, tokenFile: "f", board: "envboard"},
		"version --token t --board mine":                   {addrs: []string{"http://env", "http://env2"}, token: "t", board: "mine"},
	} {
		p := &program{out: io.Discard, err: io.Discard, env: func(name string) (string, bool) {
			value, ok := env[name]
			return value, ok
		}}
		if code := p.run(t.Context(), strings.Fields(line)); code != 0 {
			t.Fatalf("%s: code %d", line, code)
		}
		got := program{addrs: p.addrs, token: p.token, tokenFile: p.tokenFile, board: p.board}
		if !slices.Equal(got.addrs, want.addrs) || got.token != want.token || got.tokenFile != want.tokenFile || got.board != want.board {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}

func TestMoment(t *testing.T) {
	t.Parallel()
	var m moment
	if err := m.Set("2030-01-31T08:00:00.5Z"); err != nil || !m.set.Equal(time.Date(2030, 1, 31, 8, 0, 0, 5e8, time.UTC)) {
		t.Errorf("%v, %v", m.set, err)
	}
	before := time.Now()
	if err := m.Set("1h"); err != nil || m.set.Before(before.Add(time.Hour)) {
		t.Errorf("%v, %v", m.set, err)
	}
}

// Claims come as claim printed them: whole answers, or one by one.
func TestDecodeClaims(t *testing.T) {
	t.Parallel()
	claim := `{"uuid":"` + someUUID + `","owner":"w","token":"t"}`
	want := &client.Claim{Uuid: someUUID, Owner: "w", Token: "t"}
	for name, test := range map[string]struct {
		text string
		n    int
		err  string
	}{
		"one":          {claim, 1, ""},
		"two":          {claim + "\n" + claim, 2, ""},
		"answer":       {`{"claims":[` + claim + `,` + claim + `],"failures":[]}`, 2, ""},
		"empty answer": {`{"claims":[],"failures":[]}`, 0, ""},
		"mixed":        {`{"claims":[` + claim + `]}` + claim, 2, ""},
		"nothing":      {"", 0, ""},
		"newer server": {`{"uuid":"` + someUUID + `","owner":"w","token":"t","shiny":1}`, 1, ""},
		"not JSON":     {"token", 0, "object 1"},
		"not a claim":  {claim + `{"owner":"w"}`, 0, "object 2 is not a claim"},
		"wrong type":   {`{"uuid":17}`, 0, "object 1 is neither"},
		"a list":       {`[` + claim + `]`, 0, "object 1 is neither"},
	} {
		claims, err := decodeClaims(strings.NewReader(test.text))
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: %v, want %q", name, err, test.err)
			}
			continue
		}
		if err != nil || len(claims) != test.n {
			t.Errorf("%s: %d claims, %v, want %d", name, len(claims), err, test.n)
		}
		for _, c := range claims {
			if diff := cmp.Diff(want, c, protocmp.Transform()); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}

func FuzzDecodeClaims(f *testing.F) {
	f.Add(`{"claims":[{"uuid":"` + someUUID + `","token":"t"}]}`)
	f.Add(`{"uuid":"` + someUUID + `"} {}`)
	f.Fuzz(func(t *testing.T, text string) {
		claims, err := decodeClaims(strings.NewReader(text))
		if err != nil && claims != nil {
			t.Errorf("%d claims and an error: %v", len(claims), err)
		}
	})
}

func FuzzParsePosting(f *testing.F) {
	f.Add(`{"name":"a","details":{"x":1},"uuid":"` + someUUID + `"}`)
	f.Add(`{"name":"a","detailsRaw":{"encoding":"json","data":"e30="}}`)
	f.Fuzz(func(t *testing.T, text string) {
		posting, err := parsePosting([]byte(text))
		if err == nil && posting.GetName() == "" {
			t.Errorf("a posting without a name: %v", posting)
		}
	})
}

// The uuids of a file's lines depend on its content and on nothing else.
func TestUUIDsOfLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	content := `{"name":"a"}` + "\n\n" + `{"name":"b","uuid":"` + someUUID + `"}` + "\n" + `{"name":"c"}`
	open := func(name, content string) *jobFile {
		path := filepath.Join(dir, name)
		write(t, path, content)
		f, err := (&program{}).openJobs(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.close)
		return f
	}
	one, same, other := open("one", content), open("same", content), open("other", content+"\n")
	if one.jobs != 3 || one.unnamed != 2 {
		t.Errorf("%d jobs, %d without a uuid, want 3 and 2", one.jobs, one.unnamed)
	}
	if one.uuid(1) != same.uuid(1) || one.uuid(1) == one.uuid(4) || one.uuid(1) == other.uuid(1) {
		t.Errorf("uuids %s %s %s %s", one.uuid(1), same.uuid(1), one.uuid(4), other.uuid(1))
	}
	if id := one.uuid(1); id[14] != '5' || !strings.ContainsRune("89ab", rune(id[19])) {
		t.Errorf("%s is not of version 5", id)
	}
	piped, err := (&program{in: strings.NewReader(content)}).openJobs("-")
	if err != nil {
		t.Fatal(err)
	}
	defer piped.close()
	if piped.uuid(1) != one.uuid(1) {
		t.Errorf("standard input gives %s, the file %s", piped.uuid(1), one.uuid(1))
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	got := variables("default", &client.Claim{
		Uuid: someUUID, Owner: "w", Token: "t", Attempt: 2,
		Job: &client.Job{Name: "a\x00b", Labels: map[string]string{"customer.name-1": "ä=b", "Ü": ""}},
	})
	want := []string{
		"BOARDD_JOB_UUID=" + someUUID, "BOARDD_JOB_NAME=a\uFFFDb", "BOARDD_JOB_BOARD=default", "BOARDD_JOB_ATTEMPT=2",
		"BOARDD_JOB_OWNER=w", "BOARDD_JOB_CLAIM_TOKEN=t", "BOARDD_JOB_LABEL_CUSTOMER_NAME_1=ä=b", "BOARDD_JOB_LABEL__=",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMessageOfAnError(t *testing.T) {
	t.Parallel()
	got := message(&job.Error{Op: "claim", Kind: job.AlreadyClaimed, Message: "somebody has it", Owner: "w"})
	want := &boarddv1.Error{Code: boarddv1.Code_ALREADY_CLAIMED, Message: "somebody has it", Owner: "w"}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	for kind := job.NotFound; kind <= job.OutcomeUnknown; kind++ {
		if got := message(kind).GetCode().String(); got != kind.String() {
			t.Errorf("%v has the code %s", kind, got)
		}
	}
	if message(nil) != nil || message(errors.New("x")).GetCode() != boarddv1.Code_INTERNAL {
		t.Errorf("%v, %v", message(nil), message(errors.New("x")))
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	var w bytes.Buffer
	b := &progress{w: &w, total: 200}
	b.add(50)
	if want := "\r[##########..............................]  25 %"; w.String() != want {
		t.Errorf("%q, want %q", w.String(), want)
	}
	b.add(10) // too soon to be drawn again
	b.done()
	if want := "25 %\r\x1b[K"; !strings.HasSuffix(w.String(), want) {
		t.Errorf("%q, want %q at its end", w.String(), want)
	}
	if b := newProgress(&w, 100); b.w != nil {
		t.Errorf("a bar is drawn on what is no terminal")
	}
}
