package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/wirejson"
)

// exportFormat is the version of exports that import reads.
const exportFormat = 1

// maxExportLine is how long a line of an export may be, in bytes: a job with all that belongs
// to it.
const maxExportLine = 64 << 20

// exportLines reads an export: its header, its lines, and its end, which has to fit them.
type exportLines struct {
	in     *bufio.Reader
	sum    hash.Hash
	number int64 // of the line that was read last
	jobs   int64
	docs   int64
	first  []byte // the header
}

func newExportLines(in io.Reader) *exportLines {
	return &exportLines{in: bufio.NewReaderSize(in, 64<<10), sum: sha256.New()}
}

var errCutOff = errors.New("it was cut off: its last line does not say that it is whole")

// read returns the next line, with its end.
func (l *exportLines) read() ([]byte, error) {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			l.number++
			return line, nil
		case errors.Is(err, io.EOF):
			return nil, errCutOff
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > maxExportLine:
			return nil, fmt.Errorf("line %d has more than %d bytes: no export has such a line", l.number+1, maxExportLine)
		}
	}
}

// header reads the first line, and returns the settings of the board.
func (l *exportLines) header() (*boarddv1.BoardSettings, error) {
	line, err := l.read()
	if err != nil {
		return nil, err
	}
	var h struct {
		Export int             `json:"export"`
		Board  json.RawMessage `json:"board"`
	}
	if err := json.Unmarshal(line, &h); err != nil || h.Export == 0 {
		return nil, errors.New("line 1: it is not what boardd board export writes")
	}
	if h.Export != exportFormat {
		return nil, fmt.Errorf("line 1: it is of format %d, and this program reads %d: use a program of the version that wrote it, or a later one", h.Export, exportFormat)
	}
	settings := &boarddv1.BoardSettings{}
	if err := wirejson.Unmarshal(h.Board, settings); err != nil {
		return nil, fmt.Errorf("line 1: board: %w", err)
	}
	l.first = line
	_, _ = l.sum.Write(line) // never fails
	return settings, nil
}

// identity tells this export from others.
func (l *exportLines) identity() string {
	sum := sha256.Sum256(l.first)
	return hex.EncodeToString(sum[:8])
}

// next returns the next line, or nil where all are read and the end fits them. The header is
// read before, or by it.
func (l *exportLines) next() ([]byte, error) {
	if l.first == nil {
		if _, err := l.header(); err != nil {
			return nil, err
		}
	}
	line, err := l.read()
	if err != nil {
		return nil, err
	}
	end, err := readExportEnd(line)
	switch {
	case err != nil:
		return nil, fmt.Errorf("line %d: %w", l.number, err)
	case end != nil:
		return nil, l.ended(end)
	case bytes.HasPrefix(line, []byte(`{"document"`)):
		l.docs++
	default:
		l.jobs++
	}
	_, _ = l.sum.Write(line) // never fails
	return line, nil
}

// exportEnd is what the last line of an export says.
type exportEnd struct {
	Open, Trashed, Ended, Documents int64
	Changed                         bool
	SHA256                          string
}

// readExportEnd reads a line that may be the last of an export; nil: it is another one.
func readExportEnd(line []byte) (*exportEnd, error) {
	if !bytes.HasPrefix(line, []byte(`{"end"`)) {
		if !json.Valid(line) {
			return nil, errors.New("it is no JSON object")
		}
		return nil, nil //nolint:nilnil // it is a line like any other
	}
	var e struct {
		End exportEnd `json:"end"`
	}
	err := json.Unmarshal(line, &e)
	return &e.End, err
}

// ended compares the end with what was read.
func (l *exportLines) ended(e *exportEnd) error {
	if err := l.fits(e.SHA256); err != nil {
		return err
	}
	if jobs := e.Open + e.Trashed + e.Ended; jobs != l.jobs || e.Documents != l.docs {
		return fmt.Errorf("line %d: there are %d jobs and %d documents, and it says %d and %d", l.number, l.jobs, l.docs, jobs, e.Documents)
	}
	return l.nothingFollows()
}

// fits compares the checksum of the end with that of the lines before.
func (l *exportLines) fits(sum string) error {
	if got := hex.EncodeToString(l.sum.Sum(nil)); got != sum {
		return fmt.Errorf("line %d: the checksum of the lines before is %s, and %s is written here: the file was changed or damaged", l.number, got, sum)
	}
	return nil
}

func (l *exportLines) nothingFollows() error {
	if _, err := l.in.Peek(1); !errors.Is(err, io.EOF) {
		return fmt.Errorf("line %d: something follows the end", l.number+1)
	}
	return nil
}
