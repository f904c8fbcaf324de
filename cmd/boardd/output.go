package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/wirejson"
)

// format is how a command writes what it found. It is a flag.
type format string

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "table|json" }
func (f *format) Set(s string) error {
	switch s := strings.ToLower(s); s {
	case "table", "json":
		*f = format(s)
		return nil
	}
	return errors.New("want table or json")
}

// show writes an answer: as it is, or as the table that rows makes of it.
func (p *program) show(answer proto.Message, rows func(t *table)) error {
	if p.output == "json" {
		return p.showJSON(answer)
	}
	t := &table{}
	rows(t)
	return t.write(p.out)
}

// showJSON writes one message on one line.
func (p *program) showJSON(m proto.Message) error { return writeJSON(p.out, m) }

// writeJSON writes one message on one line.
func writeJSON(to io.Writer, m proto.Message) error {
	line, err := wirejson.Marshal(m)
	if err != nil {
		return err
	}
	_, err = to.Write(append(tameJSON(line), '\n'))
	return err
}

// tameJSON writes JSON so that it is one line and that nothing in it steers a terminal.
// What does stands within strings, where an escape means the same.
func tameJSON(line []byte) []byte {
	tame := make([]byte, 0, len(line)+1)
	for _, r := range string(line) { // the server has seen to it that this is UTF-8
		switch {
		case r == '\n' || r == '\r': // between the parts of somebody's details, never inside a string
			tame = append(tame, ' ')
		case steers(r):
			tame = fmt.Appendf(tame, "\\u%04x", r)
		default:
			tame = utf8.AppendRune(tame, r)
		}
	}
	return tame
}

// steers reports whether a character does something to a terminal in place of being
// shown: controls, of both tables, and what changes the direction or ends a line.
func steers(r rune) bool {
	return r != '\t' && unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// table is text in columns.
type table struct {
	buffer bytes.Buffer
}

// row adds a line of cells.
func (t *table) row(cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			t.buffer.WriteByte('\t')
		}
		t.buffer.WriteString(text(cell))
	}
	t.buffer.WriteByte('\n')
}

// line adds a label and its value, unless that is empty.
func (t *table) line(label string, value any) {
	if s := text(value); s != "" {
		t.buffer.WriteString(label + ":\t" + s + "\n")
	}
}

func (t *table) write(w io.Writer) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := columns.Write(t.buffer.Bytes()); err != nil {
		return err
	}
	return columns.Flush()
}

func text(cell any) string {
	switch v := cell.(type) {
	case string:
		return printable(v)
	case []byte:
		return printable(string(v))
	case *timestamppb.Timestamp:
		if v == nil {
			return ""
		}
		return v.AsTime().UTC().Format(time.RFC3339)
	case time.Duration:
		return v.String()
	default:
		return printable(fmt.Sprint(v))
	}
}

// printable keeps what others wrote from steering the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if steers(r) || r == '\t' {
			return '\uFFFD'
		}
		return r
	}, s)
}

// terminal reports whether what a program reads or writes is one.
func terminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// message is the public form of an item's error, as in an answer; nil for nil.
func message(err error) *boarddv1.Error {
	if err == nil {
		return nil
	}
	e := &boarddv1.Error{Message: err.Error()}
	kind := job.KindOf(err)
	e.Retryable = kind.Retryable()
	e.Code = boarddv1.Code_Enum(boarddv1.Code_Enum_value[kind.String()])
	if known, ok := errors.AsType[*job.Error](err); ok {
		e.Owner = known.Owner
		if known.Message != "" {
			e.Message = known.Message
		}
	}
	return e
}

// results is the answer about n items that a call's error stands for.
func results(err error, n int) []*boarddv1.Result {
	list := make([]*boarddv1.Result, n)
	for i, err := range client.Each(err, n) {
		list[i] = &boarddv1.Result{Error: message(err)}
	}
	return list
}

// jobResults is the answer about jobs that a call returned.
func jobResults(jobs []*client.Job, err error) []*boarddv1.JobResult {
	list := make([]*boarddv1.JobResult, len(jobs))
	for i, err := range client.Each(err, len(jobs)) {
		list[i] = &boarddv1.JobResult{Job: jobs[i], Error: message(err)}
	}
	return list
}

// postResults is the answer to a post as the server gave it.
func postResults(postings []*client.NewJob, jobs []*client.Job, err error) *boarddv1.PostJobsResponse {
	list := jobResults(jobs, err)
	for i, r := range list {
		if kept := keptFor(postings[i], r.GetJob()); kept {
			r.Existing = &kept
		}
	}
	return &boarddv1.PostJobsResponse{Results: list}
}

// keptFor reports whether a job stood already and has the posting's unique key.
func keptFor(posting *client.NewJob, j *client.Job) bool {
	return j != nil && j.GetUuid() != posting.GetUuid()
}

// partly reports whether a call answered its items, some of which may have
// failed; otherwise there is no answer to show.
func partly(err error) bool {
	var failures client.Failures
	var some notChanged
	return err == nil || errors.As(err, &failures) || errors.As(err, &some)
}
