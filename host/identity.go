package host

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/boardd/boardd/host/durable"
	"github.com/boardd/boardd/sdk/job"
)

// hostID returns what this host is called among those of a store: what lies in
// its data folder, or, without one, a new name each time.
func hostID(dataDir string) (string, error) {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	made := hex.EncodeToString(b[:])
	if dataDir == "" {
		return made, nil
	}
	path := filepath.Join(dataDir, hostIDFile)
	data, err := os.ReadFile(path)
	switch id := strings.TrimSpace(string(data)); {
	case err == nil && isID(id):
		return id, nil
	case err == nil:
		return "", job.Errorf(job.Invalid, "%s: this is not the name of a host: want 16 hexadecimal digits; take the file away for a new one", path)
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	return made, durable.WriteFile(path, []byte(made+"\n"))
}

// hostIDFile is in the data folder.
const hostIDFile = "host-id"

func isID(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 8
}
