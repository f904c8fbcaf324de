package board

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// A job's log is kept in attached records of about logChunkSize each, apart from
// the status record, which knows only where they begin and how large they are.
// An append writes the last one anew, or begins another.
const (
	logChunkSize  = 8 << 10
	maxLogChunks  = 256 // more are put together, see appender.compact
	logPrefix     = "log/"
	logEntryExtra = 32 // what an entry takes beyond its texts, at most
)

// logState is what the status record knows of the log.
type logState struct {
	last    int64      // serial of the last entry
	request uint64     // digest of the request that appended last; 0: it had none
	chunks  []logChunk // oldest first; shared, so never changed
}

type logChunk struct {
	first int64 // serial of its first entry
	size  int   // bytes
}

func (c logChunk) name() string { return fmt.Sprintf("%s%012d", logPrefix, c.first) }

func (l *logState) read(data []byte) error {
	last, n := binary.Uvarint(data)
	if n <= 0 || len(data) < n+8 || last > 1<<62 {
		return errRecord
	}
	l.last, l.request = int64(last), binary.LittleEndian.Uint64(data[n:])
	first := int64(0)
	for data = data[n+8:]; len(data) > 0; {
		step, n := binary.Uvarint(data)
		if n <= 0 || step == 0 || step > 1<<62 {
			return errRecord
		}
		size, m := binary.Uvarint(data[n:])
		if m <= 0 || size > job.MaxLogBytes {
			return errRecord
		}
		first += int64(step)
		if first > l.last {
			return errRecord
		}
		l.chunks = append(l.chunks, logChunk{first, int(size)})
		data = data[n+m:]
	}
	return nil
}

func (l *logState) append(dst []byte) []byte {
	if l.last == 0 {
		return dst
	}
	b := binary.AppendUvarint(make([]byte, 0, 16+4*len(l.chunks)), uint64(l.last)) //nolint:gosec // it counts from 1
	b = binary.LittleEndian.AppendUint64(b, l.request)
	first := int64(0)
	for _, c := range l.chunks {
		b = binary.AppendUvarint(b, uint64(c.first-first)) //nolint:gosec // they grow
		b = binary.AppendUvarint(b, uint64(c.size))        //nolint:gosec // a length
		first = c.first
	}
	return appendField(dst, statusLog, b)
}

// bytes is the size of all chunks.
func (l *logState) bytes() (sum int) {
	for _, c := range l.chunks {
		sum += c.size
	}
	return sum
}

// trim drops the oldest chunks until the log is within its limits, the last one
// excepted, and returns them.
func (l *logState) trim() (dropped []logChunk) {
	bytes, n := l.bytes(), 0
	for n < len(l.chunks)-1 && (bytes > job.MaxLogBytes || l.last-l.chunks[n].first+1 > job.MaxLogEntries) {
		bytes -= l.chunks[n].size
		n++
	}
	dropped = l.chunks[:n]
	l.chunks = l.chunks[n:]
	return dropped
}

// appendEntry writes an entry into a chunk. Its serial is its place.
func appendEntry(dst []byte, e *job.LogEntry) []byte {
	b := binary.AppendVarint(make([]byte, 0, len(e.Type)+len(e.Message)+logEntryExtra), e.At.UnixMicro())
	b = binary.AppendVarint(b, int64(e.Index))
	b = binary.AppendUvarint(b, uint64(len(e.Type)))
	b = append(append(b, e.Type...), e.Message...)
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// readChunk decodes a chunk whose first entry has the given serial.
func readChunk(data []byte, first int64) ([]job.LogEntry, error) {
	var entries []job.LogEntry
	for len(data) > 0 {
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			return nil, errRecord
		}
		e, err := readEntry(data[n : n+int(size)]) //nolint:gosec // not more than len(data)
		if err != nil {
			return nil, err
		}
		e.Serial = first + int64(len(entries))
		entries = append(entries, e)
		data = data[n+int(size):] //nolint:gosec // not more than len(data)
	}
	return entries, nil
}

func readEntry(data []byte) (job.LogEntry, error) {
	at, n := binary.Varint(data)
	if n <= 0 {
		return job.LogEntry{}, errRecord
	}
	data = data[n:]
	index, n := binary.Varint(data)
	if n <= 0 || index < 0 || index > job.MaxOperations {
		return job.LogEntry{}, errRecord
	}
	data = data[n:]
	size, n := binary.Uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) {
		return job.LogEntry{}, errRecord
	}
	data = data[n:]
	return job.LogEntry{
		Index: int32(index), At: time.UnixMicro(at).UTC(), Type: string(data[:size]), Message: string(data[size:]),
	}, nil
}

// chunked puts encoded entries into chunks, beginning with one that may have
// some already. It returns them with their contents.
func chunked(tail logTail, entries []job.LogEntry) (chunks []logChunk, contents [][]byte) {
	first, data := tail.first, slices.Clip(tail.data)
	for i := range entries {
		e := appendEntry(nil, &entries[i])
		if len(data) > 0 && len(data)+len(e) > logChunkSize {
			chunks, contents = append(chunks, logChunk{first, len(data)}), append(contents, data)
			data = nil
		}
		if len(data) == 0 {
			first = entries[i].Serial
		}
		data = append(data, e...)
	}
	return append(chunks, logChunk{first, len(data)}), append(contents, data)
}

// logTail is the last chunk of a log.
type logTail struct {
	first, last int64 // serials
	data        []byte
}
