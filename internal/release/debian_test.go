package release_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// machine is a root that packages are installed into: what the scripts of packages expect
// of a machine, and no program at all.
type machine struct {
	*testing.T
	root string
	addr string // of its server
}

// ownMounts ends the test unless it runs as root, may mount, and has the programs.
func ownMounts(t *testing.T, programs ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		testneed.Skip(t, "only root can make another root")
	}
	for _, program := range append(programs, "unshare") {
		testneed.Program(t, program)
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "true").CombinedOutput(); err != nil {
		testneed.Skip(t, "mounts of its own (CAP_SYS_ADMIN) are not allowed here: "+string(out))
	}
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	ownMounts(t, "dpkg", "dpkg-deb", "useradd", "userdel", "chroot")
	m := &machine{T: t, root: filepath.Join(t.TempDir(), "root")}
	for _, folder := range []string{"etc", "dev", "proc", "tmp", "usr/bin", "lib/systemd/system", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"} {
		if err := os.MkdirAll(filepath.Join(m.root, folder), 0o755); err != nil { //nolint:gosec // as on a machine
			t.Fatal(err)
		}
	}
	for file, text := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n", "etc/shadow": "root:*:1::::::\n", "etc/gshadow": "root:*::\n", "dev/null": "", "var/lib/dpkg/info/passwd.list": "",
		"var/lib/dpkg/status": "Package: passwd\nStatus: install ok installed\nVersion: 1\nArchitecture: amd64\nMaintainer: test <test@example.org>\nDescription: useradd\n\n",
	} {
		if err := os.WriteFile(filepath.Join(m.root, file), []byte(text), 0o644); err != nil { //nolint:gosec // likewise
			t.Fatal(err)
		}
	}
	for _, open := range []string{m.root, filepath.Join(m.root, "tmp")} {
		if err := os.Chmod(open, 0o777); err != nil { //nolint:gosec // likewise
			t.Fatal(err)
		}
	}
	for dir := filepath.Dir(m.root); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) { // the server's user has to get there
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // nothing in it is secret
			t.Fatal(err)
		}
	}
	return m
}

func (m *machine) dpkg(args ...string) string {
	m.Helper()
	return must(m.T, "", nil, append([]string{"dpkg", "--root=" + m.root, "--force-script-chrootless", "--force-confold"}, args...)...)
}

// command is a program of the machine, as its user ids or as root, with /proc and /dev/null.
func (m *machine) command(ids string, args ...string) *exec.Cmd {
	script := `mount --rbind /proc "$0/proc" && mount --bind /dev/null "$0/dev/null" && exec chroot ${1:+--userspec="$1"} "$0" "${@:2}"`
	return exec.CommandContext(m.Context(), "unshare", append([]string{"--mount", "bash", "-c", script, m.root, ids}, args...)...)
}

func (m *machine) boardd(args ...string) string {
	m.Helper()
	c := m.command("", append([]string{"/usr/bin/boardd"}, args...)...)
	c.Env = append(os.Environ(), "BOARDD_ADDR="+m.addr)
	out, err := c.CombinedOutput()
	if err != nil {
		m.Fatalf("boardd %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// files are all that lie in the root, but for what dpkg and the tools for users keep for themselves.
func (m *machine) files() []string {
	m.Helper()
	var found []string
	err := fs.WalkDir(os.DirFS(m.root), ".", func(path string, _ fs.DirEntry, err error) error {
		if !strings.HasPrefix(path, "var/lib/dpkg/") && !regexp.MustCompile(`^(etc/(passwd|group|shadow|gshadow|sub[ug]id)-?|var/log(/.*)?)$`).MatchString(path) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		m.Fatal(err)
	}
	return found
}

func (m *machine) read(path string) string {
	m.Helper()
	text, err := os.ReadFile(filepath.Join(m.root, path))
	if err != nil {
		m.Fatal(err)
	}
	return string(text)
}

// serve starts the server as its unit does, does something with it, and ends it.
func (m *machine) serve(do func()) {
	m.Helper()
	line := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(m.read("lib/systemd/system/boardd.service"))
	user := regexp.MustCompile(`(?m)^boardd:x:(\d+:\d+):`).FindStringSubmatch(m.read("etc/passwd"))
	if line == nil || user == nil {
		m.Fatalf("the unit starts %q, as the user %q", line, user)
	}
	ready := filepath.Join(m.root, "tmp", "ready")
	c := m.command(user[1], append(strings.Fields(line[1]), "--listen", "127.0.0.1:0", "--drain-delay", "0s", "--ready-file", "/tmp/ready")...)
	log := &strings.Builder{}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		m.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	testserver.Eventually(m, "the server is ready", func() bool {
		select {
		case err := <-ended:
			m.Fatalf("the server ended: %v\n%s", err, log)
		default:
		}
		text, err := os.ReadFile(ready)
		m.addr = strings.TrimSpace(string(text))
		return err == nil && len(text) > 0
	})
	do()
	if err := c.Process.Signal(os.Interrupt); err != nil {
		m.Fatal(err)
	}
	if err := <-ended; err != nil {
		m.Errorf("the server ended: %v\n%s", err, log)
	}
}

func (m *machine) mode(path string, want fs.FileMode) {
	m.Helper()
	info, err := os.Stat(filepath.Join(m.root, path))
	if err != nil || info.Mode().Perm() != want {
		m.Errorf("%s: %v, %v; want the mode %o", path, info.Mode(), err, want)
	}
}

// debian installs the packages of a release, works with them, upgrades them, and takes
// them away again.
func debian(t *testing.T, origin, first, unpacked string) {
	m := newMachine(t)
	pkg := func(folder, name, version string) string {
		return filepath.Join(folder, fmt.Sprintf("%s_%s_amd64.deb", name, version))
	}
	names := []string{"boardd", "boardd-postgres", "boardd-redis", "boardd-zookeeper"}
	var packages, newer []string
	for _, name := range names {
		packages = append(packages, pkg(first, name, version))
	}
	before := m.files()
	m.dpkg(append([]string{"--install"}, packages...)...)
	m.mode("etc/boardd", 0o750)
	m.mode("etc/boardd/boardd.hcl", 0o640)
	m.mode("etc/boardd/root.token", 0o640)
	m.mode("var/lib/boardd", 0o700)
	m.mode("usr/lib/boardd/boardd", 0o755)
	for _, file := range []string{
		"usr/share/man/man1/boardd.1.gz", "usr/share/man/man1/boardd-job-post.1.gz", "usr/share/bash-completion/completions/boardd",
		"usr/share/zsh/vendor-completions/_boardd", "usr/share/fish/vendor_completions.d/boardd.fish", "lib/systemd/system/boardd-worker@.service",
		"usr/share/doc/boardd/copyright", "usr/share/doc/boardd-redis/copyright",
	} {
		m.mode(file, 0o644)
	}
	if changed := m.dpkg("--verify"); changed != "" {
		t.Errorf("the packages are not as they were made:\n%s", changed)
	}
	for _, driver := range []string{"embedded", "postgres", "redis", "zookeeper"} {
		if list := m.boardd("plugin", "list"); !strings.Contains(list, driver) {
			t.Errorf("boardd plugin list does not have %s:\n%s", driver, list)
		}
	}
	token := m.read("etc/boardd/root.token")
	m.serve(func() {
		m.boardd("job", "post", "first", "--token-file", "/etc/boardd/root.token")
		if out := m.boardd("worker", "run", "--until-empty", "--token-file", "/etc/boardd/root.token", "--", "/usr/bin/boardd", "version"); !strings.Contains(out, "boardd: 1 consumed") {
			t.Errorf("the worker says %s", out)
		}
		m.boardd("job", "post", "second", "--token-file", "/etc/boardd/root.token")
	})

	config := filepath.Join(m.root, "etc", "boardd", "boardd.hcl")
	if err := os.WriteFile(config, []byte(m.read("etc/boardd/boardd.hcl")+"# mine\n"), 0o640); err != nil { //nolint:gosec // as it was
		t.Fatal(err)
	}
	m.dpkg("--purge", "boardd-postgres", "boardd-zookeeper") // which would take as long to make again
	names = []string{"boardd", "boardd-redis"}
	for _, name := range []string{"postgres", "zookeeper"} {
		if err := os.Remove(filepath.Join(unpacked, "plugins", name)); err != nil {
			t.Fatal(err)
		}
	}
	out := t.TempDir()
	must(t, origin, nil, "scripts/deb.sh", unpacked, filepath.Join(unpacked, "boardd"), "0.2.0-rc1", "amd64", out)
	for _, name := range names {
		newer = append(newer, pkg(out, name, "0.2.0~rc1"))
	}
	m.dpkg(append([]string{"--install"}, newer...)...)
	if !strings.HasSuffix(m.read("etc/boardd/boardd.hcl"), "# mine\n") || m.read("etc/boardd/root.token") != token {
		t.Error("the upgrade changed the configuration or the token")
	}
	m.serve(func() {
		if list := m.boardd("job", "list", "--token-file", "/etc/boardd/root.token"); !strings.Contains(list, "second") || strings.Contains(list, "first") {
			t.Errorf("after the upgrade the board has:\n%s", list)
		}
	})

	slices.Reverse(names)
	m.dpkg(append([]string{"--remove"}, names...)...)
	if m.read("etc/boardd/root.token") != token {
		t.Error("removing took the token away")
	}
	m.dpkg(append([]string{"--purge"}, names...)...)
	after := m.files()
	for _, file := range after {
		if !slices.Contains(before, file) {
			t.Errorf("the purge leaves %s", file)
		}
	}
	if users := m.read("etc/passwd") + m.read("etc/group"); strings.Contains(users, "boardd") {
		t.Errorf("the purge leaves the user:\n%s", users)
	}
}
