package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/boardd/boardd/sdk/tempfolder"
)

// maxSocketDir leaves room for a socket's name: a path has at most 107 bytes.
const maxSocketDir = 107 - len("/plugin") - len("4294967295")

// socketFolders hold nothing but sockets, and the folder that go-plugin makes for those of the host.
var socketFolders = tempfolder.Kind{
	Prefix: "boardd-driver-",
	Ours: func(e fs.DirEntry) bool {
		return e.Type() == fs.ModeSocket || e.IsDir() && strings.HasPrefix(e.Name(), "plugin-dir")
	},
}

// socketDir makes a folder that only this user can enter. A long name of the temporary
// folder does not fit into a socket's address.
func socketDir() (*tempfolder.Folder, error) {
	var failures []error
	for _, base := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		dir, err := socketFolders.Make(base)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if len(dir.Path) <= maxSocketDir {
			return dir, nil
		}
		failures = append(failures, fmt.Errorf("the path %s is too long for a socket", dir.Path), dir.Close())
	}
	return nil, fmt.Errorf("no folder for the driver's socket: %w", errors.Join(failures...))
}
