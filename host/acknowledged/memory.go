package acknowledged

import (
	"encoding/binary"
	"path/filepath"

	"github.com/boardd/boardd/sdk/driver"
)

// Folder is where the host keeps what it must know of its stores even if they
// forgot it; "" if there is no data folder.
func Folder(dataDir string) string {
	if dataDir == "" {
		return ""
	}
	return filepath.Join(dataDir, "memory")
}

// Key is the key of what is remembered of a board.
func Key(backend, board string) string { return "board/" + backend + "/" + board }

// cameKey is the key of the move that brought a board to a backend.
func cameKey(backend, board string) string { return "came/" + backend + "/" + board }

// madeKey is the key of the ID of the board that has a name.
func madeKey(backend, board string) string { return "made/" + backend + "/" + board }

// Board is what the host remembers of a board.
type Board struct {
	Position driver.Position // up to which it was told of changes
	Witness  []byte          // the driver's own, of the last time that it opened the board
}

func (r Board) encode() []byte {
	return append(binary.AppendUvarint(nil, uint64(r.Position)), r.Witness...)
}

// Recall reads one. Nothing is remembered of what cannot be read.
func Recall(b []byte) Board {
	position, n := binary.Uvarint(b)
	if n <= 0 {
		return Board{}
	}
	r := Board{Position: driver.Position(position)}
	if len(b) > n {
		r.Witness = b[n:]
	}
	return r
}

// CatalogFolder is where a host remembers its catalog; "" if there is no data folder.
func CatalogFolder(dataDir string) string {
	if dataDir == "" {
		return ""
	}
	return filepath.Join(Folder(dataDir), "catalog")
}
