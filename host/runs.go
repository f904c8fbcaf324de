package host

import (
	"strings"

	"github.com/boardd/boardd/host/memory"
)

// The runs of a host are remembered under this name, the last ones of them: those of a host
// that is killed again and again within the time that a share of a limit takes to lapse.
const (
	runsName = "runs"
	runsKept = 16
)

// earlierRuns returns the runs of the host that have ended, and remembers that this one has
// begun; none, where that is not certain. What is remembered lies in the data folder, where it is
// written by one process at a time: who has the folder's lock knows that all others that
// ever had it have ended, since the kernel takes it from nobody who lives.
func earlierRuns(m *memory.Memory, boot string) (ended []string) {
	alone := m.Alone() // before it is read, since another one may end just now
	before := strings.Fields(string(m.Get(runsName)))
	all := append(before, boot)
	_ = m.Put(runsName, []byte(strings.Join(all[max(0, len(all)-runsKept):], " "))) // or its share lapses, as others' do
	if !alone {
		return nil
	}
	return before
}
