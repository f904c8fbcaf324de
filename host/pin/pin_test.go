package pin_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/host/pin"
	"github.com/boardd/boardd/internal/testneed"
)

func write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func publicKey(t *testing.T, dir, name string, public any) pin.Key {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	key, err := pin.ReadKey(write(t, dir, name, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want an error with %q", err, text)
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	const ofNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if got, err := pin.Check("f", nil, strings.ToUpper(ofNothing)); err != nil || got != ofNothing {
		t.Errorf("of nothing: %s, %v", got, err)
	}
	is, err := pin.Check("f", []byte("x"), ofNothing)
	wantError(t, err, "f has the SHA-256 "+is+", and "+ofNothing+" is demanded")
	if got, err := pin.ParseDigest(strings.ToUpper(ofNothing)); err != nil || got != ofNothing {
		t.Errorf("in upper case: %s, %v", got, err)
	}
	for _, wrong := range []string{"", ofNothing[1:], ofNothing + "0", "g" + ofNothing[1:]} {
		_, err := pin.ParseDigest(wrong)
		wantError(t, err, "64 hexadecimal digits")
	}
}

func TestSigned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	another, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, other := publicKey(t, dir, "maker.pub", public), publicKey(t, dir, "other.pub", another)
	data := []byte("a program")
	path := write(t, dir, "driver", data)
	both := []pin.Key{other, key}
	wantError(t, pin.Signed(path, data, both), "driver is not signed: there is no "+path+".sig")
	write(t, dir, "driver.sig", []byte(base64.StdEncoding.EncodeToString(ed25519.Sign(private, data))+"\n"))
	if err := pin.Signed(path, data, both); err != nil {
		t.Error(err)
	}
	wantError(t, pin.Signed(path, data, []pin.Key{other}), "of none of the keys that are trusted ("+filepath.Join(dir, "other.pub")+")")
	wantError(t, pin.Signed(path, []byte("another program"), both), "is not what was signed")
	for _, wrong := range []string{"", "???", "AAAA"} {
		write(t, dir, "driver.sig", []byte(wrong))
		wantError(t, pin.Signed(path, data, both), "driver.sig is no signature: want the 64 bytes of Ed25519 in base64")
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := pin.ReadKey(filepath.Join(dir, "none"))
	wantError(t, err, "no such file")
	_, err = pin.ReadKey(write(t, dir, "text", []byte("a key")))
	wantError(t, err, "want a public key of Ed25519 as PEM")
	_, err = pin.ReadKey(write(t, dir, "empty", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY"})))
	wantError(t, err, "empty: ")
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&curve.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	_, err = pin.ReadKey(write(t, dir, "curve", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	wantError(t, err, "it is a key of another kind: want Ed25519")
}

// TestOpenSSL signs as the documentation says.
func TestOpenSSL(t *testing.T) {
	t.Parallel()
	testneed.Program(t, "openssl")
	dir := t.TempDir()
	data := []byte("a program")
	path := write(t, dir, "driver", data)
	sign := exec.CommandContext(t.Context(), "sh", "-ec", `
openssl genpkey -algorithm ed25519 -out maker.key
openssl pkey -in maker.key -pubout -out maker.pub
openssl pkeyutl -sign -rawin -inkey maker.key -in driver | base64 >driver.sig`)
	sign.Dir = dir
	if out, err := sign.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	key, err := pin.ReadKey(filepath.Join(dir, "maker.pub"))
	if err != nil {
		t.Fatal(err)
	}
	if err := pin.Signed(path, data, []pin.Key{key}); err != nil {
		t.Error(err)
	}
}
