package nemesis

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Where the embedded store, and a server for what it has to remember, write and sync.
var (
	writes = []string{"embedded/wal/before-write", "memory/before-write"}
	syncs  = []string{"embedded/wal/before-sync", "memory/before-sync"}
)

// diskFaults are those of the disk of an embedded store, as its program is told of them: the kernel
// is not asked, so that only what a program does about an error is tried.
func diskFaults(folder string) []Fault {
	disk := func(name, action string, points []string) Fault {
		return Fault{name, folder, func() { arm(folder, action, points) }, func() { disarm(folder, points) }}
	}
	return []Fault{
		disk("disk full", "error=ENOSPC", writes),
		disk("disk full now and then", "error=ENOSPC probability=0.1", writes),
		disk("disk broken", "error=EIO", syncs),
		disk("disk broken now and then", "error=EIO probability=0.1", syncs),
		disk("disk slow", "sleep=300ms", syncs),
	}
}

// arm has points do something, each from one moment on: a program may look at any time.
func arm(folder, action string, points []string) {
	for _, p := range points {
		path := filepath.Join(folder, strings.ReplaceAll(p, "/", "."))
		err := os.WriteFile(path+".new", []byte(action), 0o600)
		if err == nil {
			err = os.Rename(path+".new", path)
		}
		if err != nil {
			panic(fmt.Sprintf("the point %s: %v", p, err)) // a test's own folder
		}
	}
}

func disarm(folder string, points []string) {
	for _, p := range points {
		if err := os.Remove(filepath.Join(folder, strings.ReplaceAll(p, "/", "."))); err != nil {
			panic(fmt.Sprintf("the point %s: %v", p, err))
		}
	}
}
