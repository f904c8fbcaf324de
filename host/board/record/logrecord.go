package record

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// A job's log is kept in attached records of about ChunkSize each, apart from
// the status record, which knows only where they begin and how large they are.
// An append writes the last one anew, or begins another.
const (
	ChunkSize     = 8 << 10
	MaxChunks     = 256 // above it, the next append puts them together
	LogPrefix     = "log/"
	logEntryExtra = 32 // what an entry takes beyond its texts, at most
)

// Log is what the status record knows of the log.
type Log struct {
	Last    int64   // serial of the last entry
	Request uint64  // digest of the request that appended last; 0: it had none
	Chunks  []Chunk // oldest first; shared, so never changed
}

// Chunk is a part of the log in an attached record of its own.
type Chunk struct {
	First int64 // serial of its first entry
	Size  int   // bytes
}

// Name is that of the attached record.
func (c Chunk) Name() string { return fmt.Sprintf("%s%012d", LogPrefix, c.First) }

func (l *Log) read(data []byte) error {
	last, n := binary.Uvarint(data)
	if n <= 0 || len(data) < n+8 || last > 1<<62 {
		return ErrRecord
	}
	l.Last, l.Request = int64(last), binary.LittleEndian.Uint64(data[n:])
	first := int64(0)
	for data = data[n+8:]; len(data) > 0; {
		step, n := binary.Uvarint(data)
		if n <= 0 || step == 0 || step > 1<<62 {
			return ErrRecord
		}
		size, m := binary.Uvarint(data[n:])
		if m <= 0 || size > job.MaxLogBytes {
			return ErrRecord
		}
		first += int64(step)
		if first > l.Last {
			return ErrRecord
		}
		l.Chunks = append(l.Chunks, Chunk{first, int(size)})
		data = data[n+m:]
	}
	return nil
}

func (l *Log) append(dst []byte) []byte {
	if l.Last == 0 {
		return dst
	}
	b := binary.AppendUvarint(make([]byte, 0, 16+4*len(l.Chunks)), uint64(l.Last)) //nolint:gosec // it counts from 1
	b = binary.LittleEndian.AppendUint64(b, l.Request)
	first := int64(0)
	for _, c := range l.Chunks {
		b = binary.AppendUvarint(b, uint64(c.First-first)) //nolint:gosec // they grow
		b = binary.AppendUvarint(b, uint64(c.Size))        //nolint:gosec // a length
		first = c.First
	}
	return AppendField(dst, statusLog, b)
}

// bytes is the size of all chunks.
func (l *Log) bytes() (sum int) {
	for _, c := range l.Chunks {
		sum += c.Size
	}
	return sum
}

// Trim drops the oldest chunks until the log is within its limits, the last one
// excepted, and returns them.
func (l *Log) Trim() (dropped []Chunk) {
	bytes, n := l.bytes(), 0
	for n < len(l.Chunks)-1 && (bytes > job.MaxLogBytes || l.Last-l.Chunks[n].First+1 > job.MaxLogEntries) {
		bytes -= l.Chunks[n].Size
		n++
	}
	dropped = l.Chunks[:n]
	l.Chunks = l.Chunks[n:]
	return dropped
}

// AppendEntry writes an entry into a chunk. Its serial is its place.
func AppendEntry(dst []byte, e *job.LogEntry) []byte {
	b := binary.AppendVarint(make([]byte, 0, len(e.Type)+len(e.Message)+logEntryExtra), e.At.UnixMicro())
	b = binary.AppendVarint(b, int64(e.Index))
	b = binary.AppendUvarint(b, uint64(len(e.Type)))
	b = append(append(b, e.Type...), e.Message...)
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// ReadChunk decodes a chunk whose first entry has the given serial.
func ReadChunk(data []byte, first int64) ([]job.LogEntry, error) {
	var entries []job.LogEntry
	for len(data) > 0 {
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			return nil, ErrRecord
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
		return job.LogEntry{}, ErrRecord
	}
	data = data[n:]
	index, n := binary.Varint(data)
	if n <= 0 || index < 0 || index > job.MaxOperations {
		return job.LogEntry{}, ErrRecord
	}
	data = data[n:]
	size, n := binary.Uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) {
		return job.LogEntry{}, ErrRecord
	}
	data = data[n:]
	return job.LogEntry{
		Index: int32(index), At: time.UnixMicro(at).UTC(), Type: string(data[:size]), Message: string(data[size:]),
	}, nil
}

// Chunked puts encoded entries into chunks, beginning with one that may have
// some already. It returns them with their contents.
func Chunked(tail Tail, entries []job.LogEntry) (chunks []Chunk, contents [][]byte) {
	first, data := tail.First, slices.Clip(tail.Data)
	for i := range entries {
		e := AppendEntry(nil, &entries[i])
		if len(data) > 0 && len(data)+len(e) > ChunkSize {
			chunks, contents = append(chunks, Chunk{first, len(data)}), append(contents, data)
			data = nil
		}
		if len(data) == 0 {
			first = entries[i].Serial
		}
		data = append(data, e...)
	}
	return append(chunks, Chunk{first, len(data)}), append(contents, data)
}

// Tail is the last chunk of a log.
type Tail struct {
	First, Last int64 // serials
	Data        []byte
}
