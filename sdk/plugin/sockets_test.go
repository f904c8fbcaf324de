package plugin

import (
	"io/fs"
	"os"
	"testing"
)

// TestSocketFolderIsOurs looks at what the folder of a driver's sockets holds as long as the driver
// runs, which is what a host that is killed leaves: the next host takes away what it knows alone.
func TestSocketFolderIsOurs(t *testing.T) {
	t.Parallel()
	p, err := Start(t.Context(), command(t, "store"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	entries, err := os.ReadDir(p.child.sockets.Path)
	if err != nil {
		t.Fatal(err)
	}
	sockets := 0
	for _, e := range entries {
		if e.Type() == fs.ModeSocket {
			sockets++
		}
		if !socketFolders.Ours(e) {
			t.Errorf("the folder holds %v, which the next host would leave there", e)
		}
	}
	if sockets == 0 {
		t.Errorf("the folder holds no socket: %v", entries)
	}
}
