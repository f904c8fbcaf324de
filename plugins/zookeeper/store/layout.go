package store

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// shards is how many folders the records of one board are spread over, so that
// no list of names grows large.
const shards = 16

// A layout is where the nodes of one board lie. TaskFlow lists Board and
// nothing else; what is boardd's stands in a folder beside it.
type layout struct {
	taskflow.Paths
	own string // boardd's folder for this board
}

// layoutOf returns the nodes of a board at TaskFlow's path.
func layoutOf(path string) (layout, error) {
	paths, err := taskflow.PathsOf(path)
	if err != nil {
		return layout{}, err
	}
	cut := strings.LastIndexByte(path, '/')
	return layout{paths, path[:cut] + "/.boardd/" + path[cut+1:]}, nil
}

func (l layout) records() string          { return l.own + "/jobs" }
func (l layout) shard(n int) string       { return l.records() + "/" + strconv.FormatInt(int64(n), shards) }
func (l layout) record(id job.ID) string  { return l.shard(int(id[0]>>4)) + "/" + id.String() }
func (l layout) answers() string          { return l.own + "/answers" }
func (l layout) answer(r [16]byte) string { return fmt.Sprintf("%s/%x", l.answers(), r) }
func (l layout) hosts() string            { return l.own + "/hosts" }
func (l layout) limits() string           { return l.own + "/limits" }
func (l layout) keys() string             { return l.own + "/keys" }
func (l layout) key(name string) string   { return l.keys() + "/" + escape(name) }
func (l layout) rates() string            { return l.own + "/rates" }
func (l layout) rate(key string) string   { return l.rates() + "/" + escape(key) }
func (l layout) groups() string           { return l.own + "/groups" }
func (l layout) group(name string) string { return l.groups() + "/" + escape(name) }
func (l layout) seen() string             { return l.own + "/seen" }
func (l layout) limit(key string) string  { return l.limits() + "/" + escape(key) }
func (l layout) attached(id job.ID, name string) string {
	return l.record(id) + "/" + attachedPrefix + escape(name)
}

func (l layout) logEntry(series uint32, n int32) string { return l.log(series) + "/" + logName(n) }

// log returns the folder of the log; each time that it begins anew it is in
// another one.
func (l layout) log(series uint32) string {
	if series == 0 {
		return l.own + "/log"
	}
	return fmt.Sprintf("%s/log%d", l.own, series)
}

// attachedPrefix keeps a name such as "." from being one of ZooKeeper's own.
const attachedPrefix = "a-"

const logPrefix = "n"

func logName(n int32) string { return fmt.Sprintf("%s%010d", logPrefix, n) }

// logNumber reads a name in the log's folder.
func logNumber(name string) (int32, bool) {
	digits, ok := strings.CutPrefix(name, logPrefix)
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), ok && err == nil
}

// defaultPath is where a board lies that names no path. No two boards share it,
// and TaskFlow's rule for the trash, which replaces "jobs" wherever it stands,
// finds it only at the end.
func defaultPath(root, board string) string { return root + "/" + escape(board) + "/jobs" }

// documentFolder is where a space lies.
func documentFolder(root string, space driver.Space) string {
	if space.Board == "" {
		return root + "/.documents/all/" + escape(space.Name)
	}
	return boardDocuments(root, space.Board) + "/" + escape(space.Name)
}

func boardDocuments(root, board string) string { return root + "/.documents/of/" + escape(board) }

// escape makes one name of a path out of any text: what is not a letter, digit,
// dash or underscore becomes % and two hexadecimal digits. So does the letter
// that begins "jobs".
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case c == 'j', c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z'):
			fmt.Fprintf(&b, "%%%02x", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unescape reads what escape made.
func unescape(name string) (string, bool) {
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b = append(b, name[i])
			continue
		}
		if i+2 >= len(name) {
			return "", false
		}
		c, err := strconv.ParseUint(name[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		b = append(b, byte(c))
		i += 2
	}
	return string(b), true
}
