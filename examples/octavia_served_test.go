package examples

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

// TestOctaviaServed carries out what docs/octavia.md says that people can do on a board that
// is served beside TaskFlow's workers, with the user that docs/redis.md gives.
func TestOctaviaServed(t *testing.T) {
	t.Parallel()
	o := newOctavia(t)
	redis := testserver.StartRedis(t, testserver.RedisOptions{})
	rules := regexp.MustCompile(`(?m)^user boardd on >SECRET (.*)$`).FindStringSubmatch(readText(t, "../docs/redis.md"))
	if got := redis.Command(append([]string{"ACL", "SETUSER", "boardd", "on", ">" + observerSecret}, strings.Fields(rules[1])...)...); got != "+OK" {
		t.Fatal(got)
	}
	_, port, _ := strings.Cut(redis.Addr, ":")
	python := testserver.StartTaskFlow(t).Connect("octavia", testserver.Args{"board": "redis", "host": "127.0.0.1", "port": port, "namespace": "octavia_jobboard"}, 0)
	hung, given := python.Post("hung", nil).UUID, python.Post("given-up", nil).UUID
	if err := python.Claim(hung, "by-hand", 0); err != nil {
		t.Fatal(err)
	}
	if err := python.Claim(given, "worker", 0); err != nil {
		t.Fatal(err)
	}
	if err := python.End("trash", given, "worker"); err != nil {
		t.Fatal(err)
	}
	_, config, _ := strings.Cut(octaviaPage(t), "```hcl\n")
	config, _, _ = strings.Cut(config, "```\n")
	config = regexp.MustCompile(`(?m)^    (sentinels|sentinel_password|master_name) .*\n`).ReplaceAllString(config, "")
	program := testserver.BuildWith(t, []string{"redis"})
	server := o.serve(program, config, "  config = {\n    username", "  config = {\n    address = \""+redis.Addr+"\"\n    username", "  mode         = \"observe\"\n", "", `["viewer"]`, `["tenant-admin"]`)
	job := func(words ...string) string {
		t.Helper()
		return mustRun(t, nil, program, append([]string{"job", "--board", "octavia", "--addr", server.Addr, "--token", peopleToken}, words...)...)
	}
	in := func(uuid, state string) {
		t.Helper()
		testserver.Eventually(t, uuid+" is "+state, func() bool {
			return slices.ContainsFunc(o.list(program, server, "--state", state), func(line string) bool { return strings.HasPrefix(line, uuid) })
		})
	}
	for _, line := range []string{"release", "restore", "trash", "purge"} {
		if !strings.Contains(octaviaPage(t), "`boardd job "+line+" UUID") {
			t.Errorf("the page does not have boardd job %s", line)
		}
	}
	in(hung, "CLAIMED")
	job("release", hung, "--reason", "its worker is gone")
	if err := python.Claim(hung, "worker", 0); err != nil {
		t.Errorf("of a job that was released: %v", err)
	} else if err := python.End("consume", hung, "worker"); err != nil {
		t.Error(err)
	}
	in(given, "TRASHED")
	job("restore", given)
	in(given, "UNCLAIMED")
	if state, err := python.State(given); err != nil || state != "UNCLAIMED" {
		t.Errorf("TaskFlow sees what was restored as %s, %v", state, err)
	}
	job("trash", given, "--reason", "it fails each time")
	in(given, "TRASHED")
	if list, err := python.List(false); err != nil || len(list) != 0 {
		t.Errorf("TaskFlow lists %v, %v", list, err)
	}
	job("purge", given)
	if got := redis.Command("HLEN", "octavia_jobboard:trash"); got != ":0" {
		t.Errorf("in TaskFlow's trash there are %s", got)
	}
}
