package catalog

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// format is that of the documents. A host that finds a newer one leaves it
// alone: it cannot know what it would throw away.
const format = 1

// Tenant is a tenant that was made through the API.
type Tenant struct {
	Name    string        `json:"name"`
	ID      string        `json:"id"` // of this very tenant; a later one of the same name has another
	Made    time.Time     `json:"made"`
	Limits  config.Limits `json:"limits"`
	Deleted time.Time     `json:"deleted,omitzero"` // then only its jobs are left, until they are purged

	Version uint64 `json:"-"` // the store's; a change names the version that it changes
}

// Token is a token that was made through the API. Its secret is not kept.
type Token struct {
	Tenant  string        `json:"tenant"`
	Name    string        `json:"name"`
	ID      string        `json:"id"`
	Owner   string        `json:"owner,omitempty"` // the ID of its tenant, where that is in the catalog too
	Roles   []tenant.Role `json:"roles"`
	Boards  []string      `json:"boards,omitempty"`
	Digest  string        `json:"digest"` // SHA-256 of the secret, hexadecimal
	Made    time.Time     `json:"made"`
	Expires time.Time     `json:"expires,omitzero"`

	Version uint64 `json:"-"`
}

// Board is a board that was made through the API.
type Board struct {
	config.Board

	ID      string    `json:"id"`
	Owner   string    `json:"owner,omitempty"` // the ID of its tenant, where that is in the catalog too
	Made    time.Time `json:"made"`
	Placed  bool      `json:"placed,omitempty"` // an operator chose its place, who needs no grant
	Move    *Move     `json:"move,omitempty"`   // the last one of it; nil: it never moved
	Version uint64    `json:"-"`
}

// Policy is the versions of a policy, newest first. Its modules are kept by
// digest.
type Policy struct {
	Tenant   string          `json:"tenant"`
	Name     string          `json:"name"`
	Owner    string          `json:"owner,omitempty"`
	Versions []PolicyVersion `json:"versions"`

	Version uint64 `json:"-"`
}

// PolicyVersion is one module that a policy was.
type PolicyVersion struct {
	Digest string    `json:"digest"` // SHA-256 of the module, hexadecimal
	Size   int       `json:"size"`
	Made   time.Time `json:"made"`
	By     string    `json:"by"` // TENANT/TOKEN
}

// envelope is how each record is written.
type envelope struct {
	Format int             `json:"format"`
	Record json.RawMessage `json:"record"`
}

func encode(record any) ([]byte, error) {
	inner, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{Format: format, Record: inner})
}

func decode(doc driver.Document, record any) error {
	if decodeAtOnce(doc.Data, record) {
		return nil
	}
	var e envelope
	if err := json.Unmarshal(doc.Data, &e); err != nil {
		return &job.Error{Kind: job.Corrupt, Message: fmt.Sprintf("the document %q of the catalog cannot be read", doc.Name), Err: err}
	}
	if e.Format != format {
		return job.Errorf(job.Precondition, "the document %q of the catalog has the format %d, and this boardd knows %d: a newer one wrote it", doc.Name, e.Format, format)
	}
	d := json.NewDecoder(bytes.NewReader(e.Record))
	d.DisallowUnknownFields() // what is not known would be lost with the next change
	if err := d.Decode(record); err != nil {
		return &job.Error{Kind: job.Corrupt, Message: fmt.Sprintf("the document %q of the catalog cannot be read", doc.Name), Err: err}
	}
	return nil
}

// decodeAtOnce decodes a record inside its envelope, which takes two thirds of the time, and reports
// whether that is all there was to it. If not, decode says why.
func decodeAtOnce(data []byte, record any) bool {
	if !bytes.Contains(data, []byte(`"record"`)) {
		return false // and nothing else would be missed
	}
	e := struct {
		Format int `json:"format"`
		Record any `json:"record"`
	}{Record: record}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(&e) == nil && e.Format == format && e.Record == record && d.InputOffset() == int64(len(data))
}

// The names of documents. Names of tenants and of what they have hold no slash.
func tenantKey(name string) string         { return "tenant/" + name }
func tokenKey(tenant, name string) string  { return "token/" + tenant + "/" + name }
func boardKey(tenant, name string) string  { return "board/" + tenant + "/" + name }
func policyKey(tenant, name string) string { return "policy/" + tenant + "/" + name }

// SplitKey takes a document's name apart; name is empty for a tenant.
func SplitKey(key string) (kind, tenant, name string) {
	parts := strings.SplitN(key, "/", 3)
	parts = append(parts, "", "")
	return parts[0], parts[1], parts[2]
}

// newID returns 128 random bits.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// The store counts the versions of all documents together, so that its numbers would show
// a tenant how much others change. People are shown other numbers, made of a record's
// version and of its random ID, which nobody is shown. They differ where the versions
// differ, and are the same on every host.

// shownBits is how large they are: every JSON reader takes them for whole numbers.
const shownBits = 53

// Shown is the version of the tenant as people see it.
func (t *Tenant) Shown() uint64 { return shown(t.ID, t.Version) }

// Shown is the version of the board as people see it.
func (b *Board) Shown() uint64 { return shown(b.ID, b.Version) }

func shown(id string, version uint64) uint64 {
	if version == 0 {
		return 0 // there is none
	}
	mac := hmac.New(sha256.New, []byte(id))
	mac.Write(binary.BigEndian.AppendUint64([]byte("version"), version))
	return max(1, binary.BigEndian.Uint64(mac.Sum(nil))>>(64-shownBits))
}
