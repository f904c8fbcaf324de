package host

import (
	"encoding/binary"
	"log/slog"
	"path/filepath"

	"github.com/boardd/boardd/host/memory"
	"github.com/boardd/boardd/sdk/driver"
)

// memoryFolder is where the host keeps what it must know of its stores even if they
// forgot it; "" if there is no data folder.
func memoryFolder(dataDir string) string {
	if dataDir == "" {
		return ""
	}
	return filepath.Join(dataDir, "memory")
}

func openMemory(dataDir string, logger *slog.Logger) (*memory.Memory, error) {
	return memory.Open(memoryFolder(dataDir), logger)
}

// boardMemory is the key of what is remembered of a board.
func boardMemory(backend, board string) string { return "board/" + backend + "/" + board }

// recollection is what the host remembers of a board.
type recollection struct {
	position driver.Position // up to which it was told of changes
	memory   []byte          // the driver's own, of the last time that it opened the board
}

func (r recollection) encode() []byte {
	return append(binary.AppendUvarint(nil, uint64(r.position)), r.memory...)
}

// recall reads a recollection. Nothing is remembered of what cannot be read.
func recall(b []byte) recollection {
	position, n := binary.Uvarint(b)
	if n <= 0 {
		return recollection{}
	}
	r := recollection{position: driver.Position(position)}
	if len(b) > n {
		r.memory = b[n:]
	}
	return r
}
