// Package pin tells whether a file that somebody else made, a driver's program or a
// policy's module, is the one that was meant: by its digest, or by a signature with a
// key that its maker keeps offline. It asks no network.
package pin

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// SignatureEnding is added to a file's name for that of its signature: the 64 bytes of
// Ed25519 over the file as it is, in base64.
const SignatureEnding = ".sig"

var digestForm = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// ParseDigest reads a digest that somebody wrote down.
func ParseDigest(text string) (string, error) {
	if !digestForm.MatchString(text) {
		return "", errors.New("want a SHA-256 as 64 hexadecimal digits, such as sha256sum prints")
	}
	return strings.ToLower(text), nil
}

// Digest is the SHA-256 of what a file holds, as ParseDigest returns it.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Differs says that a file is not the one that was meant.
type Differs struct{ Path, Is, Want string }

// Error names both digests.
func (d *Differs) Error() string {
	return fmt.Sprintf("%s has the SHA-256 %s, and %s is demanded", d.Path, d.Is, d.Want)
}

// Check says whether what a file holds has a digest, and returns that which it has.
func Check(path string, data []byte, want string) (string, error) {
	is := Digest(data)
	if want != "" && is != strings.ToLower(want) {
		return is, &Differs{Path: path, Is: is, Want: strings.ToLower(want)}
	}
	return is, nil
}

// A Key is the public half of one with which files are signed.
type Key struct {
	Path   string
	public ed25519.PublicKey
}

// ReadKey reads a public key of Ed25519: PEM, as openssl pkey -pubout writes it.
func ReadKey(path string) (Key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Key{}, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PUBLIC KEY" {
		return Key{}, fmt.Errorf("%s: want a public key of Ed25519 as PEM (openssl pkey -in KEY -pubout)", path)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return Key{}, fmt.Errorf("%s: %w", path, err)
	}
	public, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return Key{}, fmt.Errorf("%s: it is a key of another kind: want Ed25519", path)
	}
	return Key{Path: path, public: public}, nil
}

// Signed says why none of the keys has signed what the file holds, by the signature
// that lies beside it; nil: one of them has.
func Signed(path string, data []byte, keys []Key) error {
	text, err := os.ReadFile(path + SignatureEnding)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is not signed: there is no %s%s", path, path, SignatureEnding)
	}
	if err != nil {
		return err
	}
	signature, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil || len(signature) != ed25519.SignatureSize {
		return fmt.Errorf("%s%s is no signature: want the %d bytes of Ed25519 in base64", path, SignatureEnding, ed25519.SignatureSize)
	}
	names := make([]string, len(keys))
	for i, key := range keys {
		if ed25519.Verify(key.public, data, signature) {
			return nil
		}
		names[i] = key.Path
	}
	return fmt.Errorf("the signature %s%s is of none of the keys that are trusted (%s), or %s, whose SHA-256 is %s, is not what was signed",
		path, SignatureEnding, strings.Join(names, ", "), path, Digest(data))
}
