// Package audit keeps the audit log of one host: records of who did what, each
// of which names the hash of the one before it, in files that are only ever
// appended to. The last record of each write is signed with a key of the host,
// and so vouches for all that stand before it. Whoever has the files, but not the
// key, cannot add, edit, remove or swap records unseen; where the tail is gone,
// the head of the chain that was published elsewhere tells.
//
// A record says nothing of what is in a job, and holds no secret.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// Record is one line of the log.
type Record struct {
	Sequence     uint64    `json:"sequence"` // from 1, without gaps
	At           time.Time `json:"at"`       // UTC, microseconds
	Host         string    `json:"host"`
	Call         string    `json:"call"`
	Tenant       string    `json:"tenant,omitempty"` // whose things it was about
	Board        string    `json:"board,omitempty"`
	Name         string    `json:"name,omitempty"` // of the token, tenant or policy that it was about
	CallerTenant string    `json:"caller_tenant,omitempty"`
	Caller       string    `json:"caller,omitempty"` // name of the token
	Remote       string    `json:"remote,omitempty"`
	Request      string    `json:"request,omitempty"`
	Result       string    `json:"result"` // "ok", or the code of the refusal
	Items        int64     `json:"items,omitempty"`
	Failed       int64     `json:"failed,omitempty"`   // of the items
	Repeated     int64     `json:"repeated,omitempty"` // how many refusals like this one it stands for
	Previous     string    `json:"previous"`           // hash of the record before it; of the first one: empty
	Hash         string    `json:"hash"`               // of all of the above

	// Signature is KEY:SIGNATURE, by a key of the host and of the hash; empty: a
	// record after this one has one. See [Key].
	Signature string `json:"signature,omitempty"`
}

// maxText is the length of the longest text in a record, in bytes: strangers
// choose some of them.
const maxText = 256

// seal puts a record in its place in the chain, and appends its line to lines. A
// key signs it.
func (r *Record) seal(lines []byte, sequence uint64, host, previous string, key *Key) []byte {
	r.Sequence, r.Host, r.Previous = sequence, host, previous
	r.At = r.At.UTC().Truncate(time.Microsecond)
	for _, text := range []*string{&r.Call, &r.Tenant, &r.Board, &r.Name, &r.CallerTenant, &r.Caller, &r.Remote, &r.Request, &r.Result} {
		*text = string(bytes.ToValidUTF8([]byte(shorten.To(*text, maxText)), []byte("?")))
	}
	text := r.bare()
	r.Hash, r.Signature = sumOf(text), ""
	lines = append(lines, text[:len(text)-len(noHash)]...)
	lines = append(lines, `"hash":"`...)
	lines = append(lines, r.Hash...)
	if key != nil {
		r.Signature = key.sign(r.Hash)
		lines = append(lines, `","signature":"`...)
		lines = append(lines, r.Signature...)
	}
	return append(lines, "\"}\n"...)
}

// noHash ends every record without its hash and signature, which stand last.
const noHash = `"hash":""}`

// bare is the text that is hashed: the record without its hash and signature.
func (r *Record) bare() []byte {
	bare := *r
	bare.Hash, bare.Signature = "", ""
	text, err := json.Marshal(&bare)
	if err != nil {
		return []byte(noHash) // a time beyond the year 9999, which no clock shows
	}
	return text
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Sum returns the hash that the record should have.
func (r *Record) Sum() string { return sumOf(r.bare()) }

// Line is a record as it is written, one line of a file.
func (r *Record) Line() []byte {
	text, err := json.Marshal(r)
	if err != nil {
		return nil
	}
	return append(text, '\n')
}

// parse reads a line, which must be exactly as it was written.
func parse(line []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return r, job.Errorf(job.Corrupt, "it is not a record: %v", err)
	}
	if !bytes.Equal(r.Line(), append(bytes.TrimSuffix(bytes.Clone(line), []byte("\n")), '\n')) {
		return r, job.Errorf(job.Corrupt, "record %d is not as it was written", r.Sequence)
	}
	return r, nil
}
