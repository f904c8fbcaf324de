package release_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

const (
	version  = "0.1.0"
	name     = "boardd_" + version + "_linux_amd64"
	platform = "linux/amd64"
)

// nowhere is a database of vulnerabilities that is not there: what is known today must not
// decide whether a test passes.
const nowhere = "GOVULNDB=file:///nowhere"

var programs = []string{"boardd", "plugins/postgres", "plugins/redis", "plugins/zookeeper"}

// run runs a program in a folder and returns what it printed.
func run(t *testing.T, dir string, env []string, args ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), args[0], args[1:]...) //nolint:gosec // what this test names
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	return string(out), err
}

func must(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	out, err := run(t, dir, env, args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// committed makes a repository of the files at hand, with one commit, and returns its folder.
func committed(t *testing.T) string {
	t.Helper()
	root, dir := testserver.Root(t), t.TempDir()
	for file := range strings.SplitSeq(must(t, root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		from := filepath.Join(root, file)
		info, err := os.Stat(from)
		if file == "" || errors.Is(err, os.ErrNotExist) {
			continue
		}
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), text, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"config", "user.name", "test"},
		{"config", "user.email", "test@example.org"},
		{"add", "--all"},
		{"commit", "--quiet", "--no-verify", "--message", "all"},
	} {
		must(t, dir, nil, append([]string{"git"}, args...)...)
	}
	return dir
}

// files returns the content of each file of a folder.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, e := range entries {
		if found[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// TestRelease makes a release for one platform twice, from two clones, and looks at it.
func TestRelease(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"git", "jq", "tar", "ssh-keygen", "sha256sum", "dpkg-deb"} {
		testneed.Program(t, program)
	}
	origin := committed(t)
	commit := strings.TrimSpace(must(t, origin, nil, "git", "rev-parse", "HEAD"))
	key := filepath.Join(t.TempDir(), "key")
	must(t, "", nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", key)
	first := filepath.Join(t.TempDir(), "first")
	said := must(t, origin, []string{nowhere, "PLATFORMS=" + platform, "RELEASE_KEY=" + key}, "scripts/release.sh", version, first)
	for _, want := range []string{"NOT CHECKED for known vulnerabilities: ", commit, ", signed"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}

	t.Run("again", func(t *testing.T) { again(t, origin, first) })
	t.Run("signature", func(t *testing.T) { signature(t, first, key) })
	t.Run("sums", func(t *testing.T) {
		must(t, first, nil, "sha256sum", "--check", "--strict", "SHA256SUMS")
		sums := string(files(t, first)["SHA256SUMS"])
		for file := range files(t, first) {
			if !strings.HasPrefix(file, "SHA256SUMS") && !strings.Contains(sums, "  "+file+"\n") {
				t.Errorf("there is no sum of %s", file)
			}
		}
	})
	unpacked := unpack(t, filepath.Join(first, name+".tar.gz"))
	t.Run("contents", func(t *testing.T) { contents(t, first, unpacked) })
	t.Run("static", func(t *testing.T) { static(t, unpacked) })
	t.Run("version", func(t *testing.T) {
		want := "boardd " + version + " (commit " + commit + ", go"
		if got := must(t, "", nil, filepath.Join(unpacked, "boardd"), "--version"); !strings.HasPrefix(got, want) {
			t.Errorf("boardd --version: %q, want %q…", got, want)
		}
		for _, program := range programs {
			built := must(t, "", nil, "go", "version", "-m", filepath.Join(unpacked, program))
			for _, want := range []string{"\tgithub.com/boardd/boardd\tv" + version, "vcs.revision=" + commit, "vcs.modified=false"} {
				if !strings.Contains(built, want) {
					t.Errorf("go version -m %s does not say %q", program, want)
				}
			}
		}
	})
	t.Run("serves", func(t *testing.T) { serves(t, unpacked) })
	t.Run("container", func(t *testing.T) { runs(t, first, unpacked, commit) })
	t.Run("debian", func(t *testing.T) { debian(t, origin, first, unpacked) })
}

// again makes the release a second time: from a clone in another folder that has files which
// git does not know, and other tags, with settings of another machine.
func again(t *testing.T, origin, first string) {
	clone := filepath.Join(t.TempDir(), "another", "place")
	must(t, "", nil, "git", "clone", "--quiet", origin, clone)
	must(t, clone, nil, "git", "tag", "v0.0.9")
	if err := os.WriteFile(filepath.Join(clone, ".git", "info", "exclude"), []byte("unknown.go\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(clone, "cmd", "boardd", "unknown.go"), []byte("package main\n\nfunc init() { panic(1) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{nowhere, "PLATFORMS=" + platform, "TZ=Asia/Kolkata", "LC_ALL=C.UTF-8", "GOAMD64=v2", "GOFLAGS=-buildvcs=false -tags=failpoints", "CGO_ENABLED=1"}
	must(t, clone, env, "bash", "-c", `umask 077 && scripts/release.sh "$@"`, "bash", version)
	second := files(t, filepath.Join(clone, "dist"))
	for file, want := range files(t, first) {
		if file != "SHA256SUMS.sig" && !bytes.Equal(second[file], want) {
			t.Errorf("%s differs when it is made again: %d bytes, then %d", file, len(want), len(second[file]))
		}
	}
}

func signature(t *testing.T, dir, key string) {
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	allowed := filepath.Join(t.TempDir(), "allowed")
	if err := os.WriteFile(allowed, append([]byte("releases@example.org "), public...), 0o600); err != nil {
		t.Fatal(err)
	}
	verify := func(sums []byte) error {
		c := exec.CommandContext(t.Context(), "ssh-keygen", "-Y", "verify", "-n", "boardd-release", "-I", "releases@example.org", "-f", allowed, "-s", "SHA256SUMS.sig")
		c.Dir, c.Stdin = dir, bytes.NewReader(sums)
		return c.Run()
	}
	sums := files(t, dir)["SHA256SUMS"]
	if err := verify(sums); err != nil {
		t.Errorf("the signature is not good: %v", err)
	}
	sums[0] ^= 1
	if err := verify(sums); err == nil {
		t.Error("the signature is good for other sums")
	}
}

// unpack unpacks an archive, looks at how its files are written down, and returns the folder.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var names []string
	for in := tar.NewReader(zip); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.ReplaceAll(strings.TrimSuffix(h.Name, "/"), "/", "\x00")) // a folder's files come before what is named after it
		mode := int64(0o644)
		if h.Typeflag == tar.TypeDir || slices.Contains(programs, strings.TrimPrefix(h.Name, name+"/")) {
			mode = 0o755
		}
		if h.Mode != mode || h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%s is of mode %o and user %d/%d %q: want %o and root's", h.Name, h.Mode, h.Uid, h.Gid, h.Uname, mode)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("the names are not sorted: %q", names)
	}
	must(t, dir, nil, "tar", "-xzf", archive)
	return filepath.Join(dir, name)
}

// contents looks at the lists of what the programs are made of, and for the licenses of it.
func contents(t *testing.T, dir, unpacked string) {
	for program, module := range map[string]string{
		"boardd": "github.com/tetratelabs/wazero", "boardd-redis": "github.com/redis/go-redis/v9",
		"boardd-postgres": "github.com/jackc/pgx/v5", "boardd-zookeeper": "github.com/go-zookeeper/zk",
	} {
		file := program + strings.TrimPrefix(name, "boardd") + ".cdx.json"
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		type component struct{ Name, Version, Purl string }
		var list struct {
			BOMFormat string `json:"bomFormat"`
			Metadata  struct {
				Timestamp  time.Time
				Component  component
				Properties []struct{ Name, Value string }
			}
			Components []component
		}
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if c := list.Metadata.Component; list.BOMFormat != "CycloneDX" || c.Name != "github.com/boardd/boardd" || c.Version != "v"+version || list.Metadata.Timestamp.IsZero() {
			t.Errorf("%s is of %+v at %v", file, c, list.Metadata.Timestamp)
		}
		path := filepath.Join(unpacked, "boardd")
		if driver, ok := strings.CutPrefix(program, "boardd-"); ok {
			path = filepath.Join(unpacked, "plugins", driver)
		}
		binary, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(binary)
		if !strings.Contains(string(text), `"`+hex.EncodeToString(sum[:])+`"`) {
			t.Errorf("%s is not about the program in the archive", file)
		}
		if !slices.ContainsFunc(list.Components, func(c component) bool {
			return c.Name == module && strings.HasPrefix(c.Purl, "pkg:golang/"+module+"@v")
		}) {
			t.Errorf("%s does not name %s", file, module)
		}
		for _, c := range list.Components {
			licensed := filepath.Join(unpacked, "licenses", c.Name)
			if c.Name == "std" {
				licensed = filepath.Join(unpacked, "licenses", "go")
			}
			if found, err := os.ReadDir(licensed); err != nil || len(found) == 0 {
				t.Errorf("%s has no license of %s: %v", file, c.Name, err)
			}
		}
	}
}

// static checks that no program needs anything of the machine that runs it.
func static(t *testing.T, unpacked string) {
	for _, program := range programs {
		f, err := elf.Open(filepath.Join(unpacked, program))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, p := range f.Progs {
			if p.Type == elf.PT_DYNAMIC || p.Type == elf.PT_INTERP {
				t.Errorf("%s has a segment %v: it is not static", program, p.Type)
			}
		}
		if f.Section(".dynamic") != nil {
			t.Errorf("%s has a dynamic section", program)
		}
	}
}

// serves lets the unpacked program serve a board, and looks for the drivers beside it.
func serves(t *testing.T, unpacked string) {
	program := filepath.Join(unpacked, "boardd")
	plugins := must(t, "", nil, program, "plugin", "list")
	for _, driver := range []string{"embedded", "postgres", "redis", "zookeeper"} {
		if !strings.Contains(plugins, driver) {
			t.Errorf("boardd plugin list does not have %s:\n%s", driver, plugins)
		}
	}
	server := testserver.Start(t, program, "")
	c, err := client.New(client.Config{Addr: server.Addr, Token: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Board("default").Post(ctx, &client.NewJob{Name: "hello"}); err != nil {
		t.Fatal(err)
	}
	claims, err := c.Board("default").Claim(ctx, client.ClaimOptions{Owner: "me"})
	if err != nil || len(claims) != 1 {
		t.Fatalf("%v, %v", claims, err)
	}
	if err := c.Board("default").Consume(ctx, claims...); err != nil {
		t.Fatal(err)
	}
}

// TestRefused checks what is not released.
func TestRefused(t *testing.T) {
	t.Parallel()
	origin := committed(t)
	script := filepath.Join(origin, "scripts", "release.sh")
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, origin, nil, "git", "tag", "v0.2.0")
	must(t, origin, nil, "git", "commit", "--quiet", "--allow-empty", "--message", "more")
	refused := func(want string, env []string, args ...string) {
		t.Helper()
		if out, err := run(t, t.TempDir(), env, append([]string{script}, args...)...); err == nil || !strings.Contains(out, want) {
			t.Errorf("%v %v: %v, want %q:\n%s", env, args, err, want, out)
		}
	}
	refused(`want a version such as 0.1.0, got ""`, nil)
	refused(`want a version such as 0.1.0, got "v0.1.0"`, nil, "v0.1.0")
	refused(`want a version such as 0.1.0, got "0.1"`, nil, "0.1")
	refused(`got "plan9/arm"`, []string{"PLATFORMS=plan9/arm"}, version)
	refused("no-such-key cannot be read", []string{"RELEASE_KEY=no-such-key"}, version)
	refused("is not empty", nil, version, full)
	refused("check it out first", nil, "0.2.0")
	if err := os.WriteFile(filepath.Join(origin, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("not committed", nil, version)
}
