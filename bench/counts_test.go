package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

// counts is what a server has done at one moment, by the name of a metric.
type counts map[string]float64

// countsNow asks a server in --dev and the system. Calls and batches are messages that are
// answered; a wait is a thread that waited for something and was woken; bytes are those that
// a process wrote, to sockets and files.
func countsNow(b *testing.B, server *testserver.Server) counts {
	b.Helper()
	c := counts{
		"calls":        metricAs(b, server, "dev", "boardd_call_seconds_count{"),
		"batches":      metricAs(b, server, "dev", "boardd_driver_apply_seconds_count{"),
		"allocs-host":  metricAs(b, server, "dev", "go_memstats_mallocs_total "),
		"waits-host":   threads(b, server.PID()),
		"bytes-host":   written(b, server.PID()),
		"waits-driver": 0, "bytes-driver": 0,
	}
	for _, pid := range server.Drivers() {
		c["waits-driver"] += threads(b, pid)
		c["bytes-driver"] += written(b, pid)
	}
	return c
}

// plus adds what was done from one moment to another.
func (c counts) plus(to, from counts) counts {
	sum := counts{}
	for name := range to {
		sum[name] = c[name] + to[name] - from[name]
	}
	return sum
}

func (c counts) report(b *testing.B, jobs int) {
	b.Helper()
	for name, n := range c {
		b.ReportMetric(n/float64(jobs), name+"/job")
	}
}

// threads is how often the threads of a process have waited and were woken, as far as they
// have not ended.
func threads(b *testing.B, pid int) (waits float64) {
	b.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, task := range tasks {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/status", pid, task.Name())) // it may just have ended
		waits += lineOf(string(text), "voluntary_ctxt_switches:")
	}
	return waits
}

func written(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		b.Fatal(err)
	}
	return lineOf(string(text), "wchar:")
}

func lineOf(text, name string) float64 {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name); ok {
			n, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return n
		}
	}
	return 0
}
