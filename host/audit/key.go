package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/boardd/boardd/sdk/durable"
	"github.com/boardd/boardd/sdk/job"
)

// Key is what a host signs its log with. Only the server needs it: the other half,
// Public, is enough to check signatures.
type Key struct{ private ed25519.PrivateKey }

// Public is the half of a Key that may be known.
type Public ed25519.PublicKey

// signedText is what stands before the hash in the text that is signed, so that no
// signature of the same key means anything else.
const signedText = "boardd audit log: "

// OpenKey reads the key in a file, in PEM (PKCS #8, Ed25519), as made by "openssl
// genpkey -algorithm ed25519". Where there is no file, it makes a key and the file,
// for its owner's eyes only.
func OpenKey(path string) (*Key, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newKey(path)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, job.Errorf(job.Invalid, "%s: want an Ed25519 key in PEM, as made by: openssl genpkey -algorithm ed25519", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, job.Errorf(job.Invalid, "%s: want an Ed25519 key in PEM (PKCS #8): %v", path, err)
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, job.Errorf(job.Invalid, "%s: want an Ed25519 key, got another sort of key", path)
	}
	return &Key{private}, nil
}

// newKey makes a key and its file, which is there whole or not at all.
func newKey(path string) (*Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	data, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	err = durable.NewFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: data}))
	if errors.Is(err, fs.ErrExist) { // another server was quicker
		return OpenKey(path)
	}
	if err != nil {
		return nil, err
	}
	return &Key{private}, nil
}

// ReadPublic returns the public half of the key in a file.
func ReadPublic(path string) (Public, error) {
	if _, err := os.Stat(path); err != nil { // it is not made here
		return nil, err
	}
	key, err := OpenKey(path)
	if err != nil {
		return nil, err
	}
	return key.Public(), nil
}

// Public returns the half of the key that may be known.
func (k *Key) Public() Public {
	public, _ := k.private.Public().(ed25519.PublicKey)
	return Public(public)
}

// Secret derives a key for another purpose of the same host.
func (k *Key) Secret(purpose string) [32]byte {
	return sha256.Sum256(append([]byte("boardd audit, for "+purpose+": "), k.private.Seed()...))
}

func (k *Key) sign(hash string) string {
	return k.Public().ID() + ":" + base64.RawStdEncoding.EncodeToString(ed25519.Sign(k.private, []byte(signedText+hash)))
}

// ParsePublic reads what Public.String wrote.
func ParsePublic(text string) (Public, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(data) != ed25519.PublicKeySize {
		return nil, job.Errorf(job.Invalid, "%q is no public key of an audit log", text)
	}
	return Public(data), nil
}

// String is the key in base64.
func (p Public) String() string { return base64.StdEncoding.EncodeToString(p) }

// ID is a short name of the key, by which signatures name it.
func (p Public) ID() string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:8])
}

// verdict is what a signature is worth.
type verdict int

const (
	unsigned  verdict = iota // there is none
	foreign                  // by another key
	signed                   // by this key
	wrongSign                // it names this key, which did not make it
)

// check judges the signature of a record.
func (p Public) check(r *Record) verdict {
	if len(p) != ed25519.PublicKeySize || r.Signature == "" {
		return unsigned
	}
	id, text, _ := strings.Cut(r.Signature, ":")
	if id != p.ID() {
		return foreign
	}
	signature, err := base64.RawStdEncoding.Strict().DecodeString(text)
	if err != nil || !ed25519.Verify(ed25519.PublicKey(p), []byte(signedText+r.Hash), signature) {
		return wrongSign
	}
	return signed
}

// KeyFile is where a server has its key that was told no other place.
func KeyFile(dataDir string) string { return filepath.Join(dataDir, "keys", "audit.pem") }
