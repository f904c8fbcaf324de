package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/wirejson"
)

// How much one call posts, whichever is reached first.
const (
	postBatch = 256
	postBytes = 1 << 20
)

// maxLine is more than the largest job that a board takes.
const maxLine = 16 << 20

// jobFile is a file with a posting on each line.
type jobFile struct {
	file    *os.File
	name    string // for messages
	size    int64
	digest  [sha256.Size]byte
	jobs    int
	unnamed int // jobs without a uuid of their own
	remove  bool
}

// line is one posting of a file.
type line struct {
	number  int
	posting *client.NewJob
	size    int
}

// openJobs opens a file and checks every line of it. Standard input is kept in a
// temporary file, since it is read twice.
func (p *program) openJobs(path string) (*jobFile, error) {
	f := &jobFile{name: path}
	var err error
	if path == "-" {
		f.name = "standard input"
		f.file, err = os.CreateTemp("", "boardd-post-*")
		if err == nil {
			f.remove = true
			_, err = io.Copy(f.file, p.in)
		}
	} else {
		f.file, err = os.Open(path)
	}
	if err == nil {
		err = f.check()
	}
	if err != nil {
		f.close()
		if _, ok := errors.AsType[usageError](err); ok {
			return nil, err
		}
		return nil, usagef("--from: %v", err)
	}
	return f, nil
}

func (f *jobFile) close() {
	if f.file == nil {
		return
	}
	_ = f.file.Close()
	if f.remove {
		_ = os.Remove(f.file.Name())
	}
}

// check reads the file once: its digest, and what is wrong with it.
func (f *jobFile) check() error {
	digest := sha256.New()
	var wrong []string
	err := f.lines(digest, func(l line, err error) error {
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("%s:%d: %v", f.name, l.number, err))
			if len(wrong) == 20 {
				return errors.New("too many wrong lines")
			}
		case l.posting.Uuid == "":
			f.unnamed++
		}
		f.jobs++
		f.size += int64(l.size)
		return nil
	})
	if len(wrong) > 0 {
		return usagef("%s\nnothing was posted", strings.Join(wrong, "\n"))
	}
	if err != nil {
		return err
	}
	if f.jobs == 0 {
		return usagef("%s holds no jobs: want a JSON object on each line, such as {\"name\":\"resize\"}", f.name)
	}
	copy(f.digest[:], digest.Sum(nil))
	return nil
}

// lines reads the file from its beginning. each is given every line that is not
// empty, or what is wrong with it; its error ends the reading.
func (f *jobFile) lines(digest io.Writer, each func(l line, err error) error) error {
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	scanner := bufio.NewScanner(io.TeeReader(f.file, digest))
	scanner.Buffer(make([]byte, 0, 64<<10), maxLine)
	number := 0
	for scanner.Scan() {
		number++
		text := bytes.TrimSpace(scanner.Bytes())
		if len(text) == 0 {
			continue
		}
		posting, err := parsePosting(text)
		if err := each(line{number, posting, len(scanner.Bytes()) + 1}, err); err != nil {
			return err
		}
	}
	if errors.Is(scanner.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("%s:%d: the line is longer than %d bytes", f.name, number+1, maxLine)
	}
	return scanner.Err()
}

func parsePosting(text []byte) (*client.NewJob, error) {
	posting := &client.NewJob{}
	if err := wirejson.Unmarshal(text, posting); err != nil {
		return nil, err
	}
	if posting.Name == "" {
		return nil, errors.New("name: want the name of the job")
	}
	if posting.Details != nil && posting.Details[0] != '{' {
		return nil, errors.New("details: want a JSON object, such as {\"path\":\"/a.png\"}")
	}
	if posting.Uuid != "" {
		if _, err := job.ParseID(posting.Uuid); err != nil {
			return nil, fmt.Errorf("uuid: %w", err)
		}
	}
	// The decoder may point into the scanner's buffer, which is used again.
	return proto.CloneOf(posting), nil
}

// uuid makes the uuid of a line that has none: version 5 (RFC 4122) of the
// file's digest and the line's number.
func (f *jobFile) uuid(number int) string {
	namespace := job.ID{0xb0, 0xa2, 0xdd, 0x1e, 0x4f, 0x5c, 0x4e, 0x0b, 0x9a, 0x77, 0x1d, 0x6a, 0x3f, 0x0d, 0x52, 0xc9}
	h := sha1.New() // what version 5 demands
	h.Write(namespace[:])
	h.Write(f.digest[:])
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(number))
	h.Write(b[:])
	var id job.ID
	copy(id[:], h.Sum(nil))
	id[6] = id[6]&0x0f | 0x50
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// postFile posts all of a file, batch by batch.
func (p *program) postFile(ctx context.Context, path string) error {
	f, err := p.openJobs(path)
	if err != nil {
		return err
	}
	defer f.close()
	board, done, err := p.onBoard()
	if err != nil {
		return err
	}
	defer done()
	up := &upload{program: p, board: board, file: f, bar: newProgress(p.err, f.size)}
	err = f.lines(io.Discard, func(l line, err error) error {
		if err != nil {
			return fmt.Errorf("%s:%d: the file changed meanwhile: %w", f.name, l.number, err)
		}
		return up.add(ctx, l)
	})
	if err == nil {
		err = up.flush(ctx)
	}
	up.bar.done()
	return up.finish(err)
}

// upload is a file on its way to a board.
type upload struct {
	*program
	board *client.Board
	file  *jobFile
	bar   *progress

	lines   []line
	bytes   int
	posted  endings
	kept    int // jobs that stood already and have the key of a line
	refused []error
}

func (u *upload) add(ctx context.Context, l line) error {
	if l.posting.Uuid == "" {
		l.posting.Uuid = u.file.uuid(l.number)
	}
	u.lines = append(u.lines, l)
	u.bytes += l.size
	if len(u.lines) < postBatch && u.bytes < postBytes {
		return nil
	}
	return u.flush(ctx)
}

func (u *upload) flush(ctx context.Context) error {
	if len(u.lines) == 0 {
		return nil
	}
	postings := make([]*client.NewJob, len(u.lines))
	for i, l := range u.lines {
		postings[i] = l.posting
	}
	jobs, err := u.board.Post(ctx, postings...)
	if !partly(err) {
		return err
	}
	if u.output == "json" {
		if err := u.showJSON(postResults(postings, jobs, err)); err != nil {
			return err
		}
	}
	for i, err := range client.Each(err, len(jobs)) {
		if err == nil {
			u.posted.add(jobs[i])
			if keptFor(postings[i], jobs[i]) {
				u.kept++
			}
			continue
		}
		u.refused = append(u.refused, err)
		u.bar.clear()
		u.complain(fmt.Sprintf("%s:%d: %v: %v", u.file.name, u.lines[i].number, job.KindOf(err), err))
	}
	u.bar.add(u.bytes)
	u.lines, u.bytes = u.lines[:0], 0
	return nil
}

// before says what became of jobs that an earlier posting of the file made.
func (u *upload) before() string {
	gone := u.posted.others()
	if u.kept > 0 {
		gone = strings.TrimSuffix(fmt.Sprintf("%d that have the key of a line, %s", u.kept, gone), ", ")
	}
	if n := u.posted.consumed; n > 0 {
		gone = strings.TrimSuffix(fmt.Sprintf("%d consumed, %s", n, gone), ", ")
	}
	if gone == "" {
		return ""
	}
	return "; posted before: " + gone
}

// finish says what was done, and how to go on after an error.
func (u *upload) finish(err error) error {
	if u.output != "json" {
		fmt.Fprintf(u.out, "%d of %d jobs are on the board%s\n", u.posted.open, u.file.jobs, u.before())
	}
	if u.file.unnamed > 0 {
		u.complain(fmt.Sprintf("%d lines had no uuid and got one made from the file: posting the same file again "+
			"adds nothing twice within the board's idempotency window", u.file.unnamed))
	}
	if err != nil {
		return err
	}
	for _, refused := range u.refused {
		if job.KindOf(refused) == job.OutcomeUnknown {
			return codeError{code: exitUnknown}
		}
	}
	if len(u.refused) > 0 {
		return findings("%d jobs were refused", len(u.refused))
	}
	return nil
}
