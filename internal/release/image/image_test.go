package main

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// TestRoots checks that the image trusts what is trusted without a condition, and nothing else.
func TestRoots(t *testing.T) {
	t.Parallel()
	constrained := map[string]bool{}
	for root := range bundle.Roots() {
		constrained[string(root.Certificate)] = root.Constraint != nil
	}
	found := 0
	for rest := roots(); ; found++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !cert.IsCA {
			t.Fatalf("certificate %d: %v", found, err)
		}
		if conditional, known := constrained[string(block.Bytes)]; conditional || !known {
			t.Errorf("%s is in the image, known %v, under a condition %v", cert.Subject, known, conditional)
		}
	}
	unconditional := 0
	for _, conditional := range constrained {
		if !conditional {
			unconditional++
		}
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(roots()) || found != unconditional || found == len(constrained) {
		t.Errorf("the image has %d roots of %d, of which %d are without a condition", found, len(constrained), unconditional)
	}
}

// unpackedRelease lays out what an archive of a release has, with other programs.
func unpackedRelease(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"boardd", "plugins/redis", "plugins/postgres", "licenses/go/LICENSE", "licenses/example.org/a/LICENSE", "LICENSE", "README.md", "CHANGELOG.md"} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestSame makes an image for two architectures twice: of other folders, whose files are of
// other times and modes.
func TestSame(t *testing.T) {
	t.Parallel()
	var made [2][]byte
	for i := range made {
		folder, into := unpackedRelease(t), filepath.Join(t.TempDir(), "image.tar")
		if err := os.Chmod(filepath.Join(folder, "boardd"), []os.FileMode{0o755, 0o600}[i]); err != nil {
			t.Fatal(err)
		}
		r := release{version: "1.2.3", commit: "c0ffee", made: time.Unix(1_700_000_000, 0).UTC(), unpacked: map[string]string{"arm64": folder, "amd64": folder}}
		if err := r.write(into); err != nil {
			t.Fatal(err)
		}
		var err error
		if made[i], err = os.ReadFile(into); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Errorf("the image differs when it is made again: %d bytes, then %d", len(made[0]), len(made[1]))
	}
}

// TestPlatforms checks that the index has an image for each architecture, and all of its
// files in their order.
func TestPlatforms(t *testing.T) {
	t.Parallel()
	folder := unpackedRelease(t)
	r := release{version: "1.2.3", commit: "c0ffee", made: time.Unix(1_700_000_000, 0).UTC(), unpacked: map[string]string{"arm64": folder, "amd64": folder}}
	index, err := r.index()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		text, err := image.RawConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		var config struct {
			OS, Architecture string
			RootFS           struct {
				Type    string
				DiffIDs []string `json:"diff_ids"`
			}
		}
		if err := json.Unmarshal(text, &config); err != nil || config.RootFS.Type != "layers" || len(config.RootFS.DiffIDs) != 1 || m.Platform.Architecture != config.Architecture {
			t.Errorf("the image for %v: %v\n%s", m.Platform, err, text)
		}
		platforms = append(platforms, config.OS+"/"+config.Architecture)
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) || manifest.Annotations["org.opencontainers.image.revision"] != "c0ffee" {
		t.Errorf("the index has %q and says %v", platforms, manifest.Annotations)
	}
	files, err := newTree(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"usr/lib/boardd/plugins/redis", "usr/share/doc/boardd/licenses/example.org/a/LICENSE"} {
		if _, ok := files[want]; !ok {
			t.Errorf("there is no %s among %q", want, slices.Sorted(maps.Keys(files)))
		}
	}
}

// TestRead checks what is wrong with a command line, and what with a release.
func TestRead(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                        "want --version, --commit",
		"--version 1 --commit c":  "want --version, --commit",
		"--version 1 amd64":       `want ARCHITECTURE=UNPACKED, got "amd64"`,
		"--version 1 =folder":     `want ARCHITECTURE=UNPACKED, got "=folder"`,
		"--commit c --epoch when": "invalid value",
	} {
		if _, _, err := read(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	folder := unpackedRelease(t)
	r, into, err := read([]string{"--version", "1.2.3", "--commit", "c", "--epoch", "1", "--into", filepath.Join(folder, "image.tar"), "amd64=" + folder})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(folder, "boardd")); err != nil {
		t.Fatal(err)
	}
	if err := r.write(into); err == nil || !strings.Contains(err.Error(), "boardd") {
		t.Errorf("a release without its program: %v", err)
	}
	if _, err := os.Stat(into); err == nil {
		t.Error("an image of it was written")
	}
}
