package fleet

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/boardd/boardd/sdk/job"
)

// Key is what the servers of a fleet share: secrets, of which the first one seals and any
// opens, so that one can be put in the place of another without a stop.
type Key struct{ secrets [][]byte }

// Bounds of a key.
const (
	MinSecret  = 32 // bytes
	MaxSecrets = 4
)

// ParseKey reads a key: one secret a line, the present one first.
func ParseKey(text []byte) (Key, error) {
	var k Key
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if len(line) < MinSecret {
			return Key{}, job.Errorf(job.Invalid, "line %d has %d characters; want a secret of at least %d, such as `openssl rand -hex 32` makes", len(k.secrets)+1, len(line), MinSecret)
		}
		k.secrets = append(k.secrets, bytes.Clone(line))
	}
	if len(k.secrets) == 0 || len(k.secrets) > MaxSecrets {
		return Key{}, job.Errorf(job.Invalid, "want 1 to %d secrets, one a line, the present one first; got %d", MaxSecrets, len(k.secrets))
	}
	return k, nil
}

// NewKey makes a key.
func NewKey() []byte {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return []byte(hex.EncodeToString(b[:]))
}

// None reports whether there is no secret, so that nothing can be sealed or opened.
func (k Key) None() bool { return len(k.secrets) == 0 }

// Passed is what a server says with a call that it passes on.
type Passed struct {
	From   string          `json:"from"`   // the sender's run: its Boot
	To     string          `json:"to"`     // the receiver's
	Number uint64          `json:"number"` // of this message among those from From to To
	Call   string          `json:"call"`   // the path of the request
	Body   string          `json:"body"`   // SHA-256 of the request's body, hexadecimal
	Caller json.RawMessage `json:"caller"` // who makes the call
	Remote string          `json:"remote"` // where the caller called from
	Must   bool            `json:"must"`   // the board is to be opened for this call: who has it open cannot be reached
}

// What is sealed, so that no seal of one kind is one of the other.
const (
	callSeal   = "boardd peer call 1\n"
	answerSeal = "boardd peer answer 1\n"
	publicSeal = "boardd peer public 1\n"
)

// Seal returns the header that carries p, and what the answer has to prove.
func (k Key) Seal(p Passed) (header, proof string, err error) {
	if k.None() {
		return "", "", job.Errorf(job.Unavailable, "the fleet has no key yet")
	}
	text, err := json.Marshal(p)
	if err != nil {
		return "", "", err
	}
	seal := mac(k.secrets[0], callSeal, text)
	return base64.RawURLEncoding.EncodeToString(text) + "." + base64.RawURLEncoding.EncodeToString(seal),
		base64.RawURLEncoding.EncodeToString(mac(k.secrets[0], answerSeal, seal)), nil
}

// Open returns what a header carries, and the proof that its receiver knows the key. It is
// Unauthenticated if no secret of the key has sealed it.
func (k Key) Open(header string) (p Passed, proof string, err error) {
	body, given, _ := strings.Cut(header, ".")
	text, err1 := base64.RawURLEncoding.DecodeString(body)
	seal, err2 := base64.RawURLEncoding.DecodeString(given)
	if err1 == nil && err2 == nil {
		for _, secret := range k.secrets {
			if hmac.Equal(seal, mac(secret, callSeal, text)) {
				if err := json.Unmarshal(text, &p); err != nil {
					return Passed{}, "", job.Errorf(job.Unauthenticated, "another server of the fleet passed on a call in a form that this one does not know")
				}
				return p, base64.RawURLEncoding.EncodeToString(mac(secret, answerSeal, seal)), nil
			}
		}
	}
	return Passed{}, "", job.Errorf(job.Unauthenticated, "this call claims to come from a server of the fleet, and is not sealed with its key")
}

// SealPublic returns the header in which a server says, with the answer of a proof, where
// clients may go straight to it.
func (k Key) SealPublic(proof, public string) string {
	if k.None() || public == "" {
		return ""
	}
	return public + " " + base64.RawURLEncoding.EncodeToString(mac(k.secrets[0], publicSeal, []byte(proof+"\n"+public)))
}

// OpenPublic returns where clients may go straight to the server that answered with a proof
// and a header, or "" if no secret of the key has sealed that. Clients will send their tokens
// there, so what stands in the catalog is not enough to say it.
func (k Key) OpenPublic(proof, header string) string {
	public, given, _ := strings.Cut(header, " ")
	seal, err := base64.RawURLEncoding.DecodeString(given)
	if err != nil || public == "" {
		return ""
	}
	for _, secret := range k.secrets {
		if hmac.Equal(seal, mac(secret, publicSeal, []byte(proof+"\n"+public))) {
			return public
		}
	}
	return ""
}

func mac(secret []byte, kind string, text []byte) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(kind))
	m.Write(text)
	return m.Sum(nil)
}

// DigestOf is the digest of a body in Passed.
func DigestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
