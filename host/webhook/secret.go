package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// secretPrefix begins a secret as people write it.
const secretPrefix = "whsec_"

// Secrets sign requests. While one takes another's place there are both, and the receiver
// accepts either.
type Secrets [][]byte

// String shows nothing, so that no log has a secret.
func (Secrets) String() string { return "(secret)" }

// GoString is String.
func (Secrets) GoString() string { return "(secret)" }

func (s Secrets) equal(o Secrets) bool { return slices.EqualFunc(s, o, bytes.Equal) }

// ParseSecrets reads one secret or several, with space between them. No error repeats them.
func ParseSecrets(text string) (Secrets, error) {
	var list Secrets
	words := strings.Fields(text)
	if len(words) == 0 || len(words) > MaxSecrets {
		return nil, job.Errorf(job.Invalid, "want 1 to %d secrets, got %d", MaxSecrets, len(words))
	}
	for _, word := range words {
		encoded, ok := strings.CutPrefix(word, secretPrefix)
		secret, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(secret) < MinSecret || len(secret) > MaxSecret {
			return nil, job.Errorf(job.Invalid, "want %s and %d to %d random bytes in base64, such as: echo %s$(head -c 32 /dev/urandom | base64)", secretPrefix, MinSecret, MaxSecret, secretPrefix)
		}
		list = append(list, secret)
	}
	return list, nil
}

// Written returns the secrets as people write them, for who sends them on.
func (s Secrets) Written() []string {
	list := make([]string, len(s))
	for i, secret := range s {
		list[i] = secretPrefix + base64.StdEncoding.EncodeToString(secret)
	}
	return list
}

// Digests tell secrets apart without showing them: of each the first bytes of a digest, in
// hexadecimal.
func (s Secrets) Digests() []string {
	list := make([]string, len(s))
	for i, secret := range s {
		sum := sha256.Sum256(append([]byte("boardd webhook secret "), secret...))
		list[i] = hex.EncodeToString(sum[:8])
	}
	return list
}

// NewSecret makes a secret, and returns it as people write it as well.
func NewSecret() (Secrets, string) {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	made := Secrets{secret}
	return made, made.Written()[0]
}

// sign returns the signature of a request, by each secret.
func (s Secrets) sign(id string, at time.Time, body []byte) string {
	list := make([]string, len(s))
	for i, secret := range s {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		list[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(list, " ")
}
