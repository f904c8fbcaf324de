package taskflow_test

import (
	"bytes"
	"encoding/hex"
	"os/exec"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/plugins/taskflow"
)

// readers are TaskFlow's own: what it does with the bytes of a posting on each
// of its boards. One line of hexadecimal in, one answer a line out.
const readers = `
import sys
from taskflow.jobs import base
from taskflow.utils import misc

def read(kind, data):
    job = misc.decode_msgpack(data) if kind == "redis" else misc.decode_json(data)
    try:
        base.JobPriority.convert(job["priority"])
    except KeyError:
        pass
    job["uuid"], job["name"]
    if kind == "redis":
        job["created_on"], job["sequence"] < 1

for line in sys.stdin:
    kind, data = line.split(" ")
    try:
        read(kind, bytes.fromhex(data))
        print("ok")
    except Exception as error:
        print(type(error).__name__)
`

// asTaskFlow asks TaskFlow which of some postings it can read.
func asTaskFlow(t *testing.T, kind string, values [][]byte) []bool {
	t.Helper()
	const python = "/usr/bin/python3"
	if err := exec.CommandContext(t.Context(), python, "-c", "import taskflow, netaddr").Run(); err != nil {
		testneed.Skip(t, python+" has no taskflow and netaddr")
	}
	var in strings.Builder
	for _, value := range values {
		in.WriteString(kind + " " + hex.EncodeToString(value) + "\n")
	}
	command := exec.CommandContext(t.Context(), python, "-c", readers)
	command.Stdin = strings.NewReader(in.String())
	out, err := command.Output()
	lines := strings.Fields(string(out))
	if err != nil || len(lines) != len(values) {
		t.Fatalf("%d answers to %d postings: %v", len(lines), len(values), err)
	}
	can := make([]bool, len(values))
	for i, line := range lines {
		can[i] = line == "ok"
	}
	return can
}

// TestSameAsTaskFlow changes real postings byte by byte and wants that nothing is
// taken that TaskFlow could not read. What it could read and we do not take has
// to be one of a few things that TaskFlow itself never writes.
func TestSameAsTaskFlow(t *testing.T) {
	t.Parallel()
	var values [][]byte
	for _, f := range load(t, "redis.json").Postings {
		values = append(values, mutations(unhex(t, f.Value), 40)...)
	}
	wanted, stricter := 0, 0
	for i, can := range asTaskFlow(t, "redis", values) {
		_, err := taskflow.DecodeRedis(field, values[i])
		switch {
		case err == nil && !can:
			t.Errorf("we take what TaskFlow cannot read: %x", values[i])
		case err == nil:
			wanted++
		case can && !strings.Contains(err.Error(), "name: ") && !strings.Contains(err.Error(), "sequence: "):
			stricter++
			t.Logf("TaskFlow can read %x: %v", values[i], err)
		}
	}
	if wanted < 100 || stricter > len(values)/100 {
		t.Errorf("of %d postings we take %d, and not %d that TaskFlow can read", len(values), wanted, stricter)
	}
}

// TestSameAsPython does the same for JSON.
func TestSameAsPython(t *testing.T) {
	t.Parallel()
	var values [][]byte
	for _, f := range load(t, "zookeeper.json").Postings {
		values = append(values, mutations([]byte(f.Value), 40)...)
	}
	taken := 0
	for i, can := range asTaskFlow(t, "zookeeper", values) {
		_, err := taskflow.DecodeZooKeeper(values[i])
		if strictly := err != nil && (strings.Contains(err.Error(), "uuid: ") || strings.Contains(err.Error(), "name: ")); can != (err == nil) && !strictly {
			t.Errorf("TaskFlow can read it: %v; we: %v: %q", can, err, values[i])
		}
		if err == nil {
			taken++
		}
	}
	if taken < 100 {
		t.Errorf("of %d postings we take %d", len(values), taken)
	}
}

// mutations returns a value as it is and with single bytes changed, at places
// spread over it.
func mutations(value []byte, places int) [][]byte {
	list := [][]byte{value}
	for i := range places {
		at := i * len(value) / places
		for _, b := range []byte{value[at] + 1, value[at] ^ 0x80, 0, '"', 0x81, 0xc0, 0xc7} {
			changed := bytes.Clone(value)
			changed[at] = b
			list = append(list, changed)
		}
	}
	return list
}
