package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"

	"github.com/boardd/boardd/sdk/job"
)

// MaxLine is how long a line of a recording may be, in bytes.
const MaxLine = 1 << 20

// Read returns the lines of a recording: of a file, or of a folder's segments one
// after the other. The error of a line names it. A line at a file's end that was
// cut is left out: its writer was.
func Read(path string) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			yield(Line{}, job.Errorf(job.NotFound, "there is no recording at %s", path))
			return
		case err != nil:
			yield(Line{}, err)
			return
		case !info.IsDir():
			readFile(path, yield)
			return
		}
		list, err := Segments(path)
		if err != nil {
			yield(Line{}, err)
			return
		}
		for _, s := range list {
			if !readFile(s.Path, yield) {
				return
			}
		}
	}
}

func readFile(path string, yield func(Line, error) bool) bool {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true // it was too old, just now
	}
	if err != nil {
		return yield(Line{}, err)
	}
	defer f.Close()
	return ReadFrom(f, path, yield)
}

// ReadFrom shows the lines of a text; name is what errors call it. It reports
// whether there is to be more.
func ReadFrom(from io.Reader, name string, yield func(Line, error) bool) bool {
	in := bufio.NewReaderSize(from, 64<<10)
	for n := 1; ; n++ {
		text, err := readLine(in)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			yield(Line{}, job.Errorf(job.Invalid, "%s:%d: %v", name, n, err))
			return false
		}
		if len(bytes.TrimSpace(text)) > 0 {
			line, err := Parse(text)
			switch {
			case err != nil && last:
				return true // it was cut
			case err != nil:
				yield(Line{}, job.Errorf(job.Invalid, "%s:%d: %v", name, n, err))
				return false
			case !yield(line, nil):
				return false
			}
		}
		if last {
			return true
		}
	}
}

// readLine returns the next line, with io.EOF if it is the last one and does not
// end.
func readLine(in *bufio.Reader) (text []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(text)+len(part) > MaxLine {
			return nil, fmt.Errorf("the line is longer than %d bytes", MaxLine)
		}
		text = append(text, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
	}
}

// Parse reads one line.
func Parse(text []byte) (Line, error) {
	var l Line
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return l, err
	}
	err := l.check()
	if err == nil && l.Job != nil && l.Job.CreatedAt.IsZero() {
		l.Job.CreatedAt = l.At
	}
	return l, err
}
