package release_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

const (
	imageUser   = 65532 // and group
	imageSecret = "a-secret-that-was-mounted-1234567890"
)

// container is one of a release's image, as runc runs it: with a root that cannot be
// written, no capability, a network of its own, and a folder for its data.
type container struct {
	*testing.T
	bundle, state string
	id            string
	health        []string // what the image says asks for its health
}

// inspected is what readers of images say of one.
type inspected struct {
	Config struct {
		User, StopSignal string
		Volumes          map[string]struct{}
		ExposedPorts     map[string]struct{}
		Labels           map[string]string
		Healthcheck      struct{ Test []string }
	}
}

// newContainer unpacks the image with umoci, which shares no code with what made it, and
// changes what its bundle says as a careful caller would.
func newContainer(t *testing.T, image string) *container {
	t.Helper()
	ownMounts(t, "skopeo", "umoci", "runc")
	dir := t.TempDir()
	layout := filepath.Join(dir, "layout")
	if err := os.Mkdir(layout, 0o700); err != nil {
		t.Fatal(err)
	}
	must(t, layout, nil, "tar", "-xf", image)
	c := &container{T: t, bundle: filepath.Join(dir, "bundle"), state: filepath.Join(dir, "state"), id: fmt.Sprintf("boardd-test-%d", os.Getpid())}
	must(t, "", nil, "umoci", "unpack", "--image", layout+":"+version, c.bundle)
	data, secrets := filepath.Join(dir, "data"), filepath.Join(dir, "secrets")
	for _, folder := range []string{data, secrets} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(secrets, "boardd-root")
	if err := os.WriteFile(secret, []byte(imageSecret), 0o400); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{data, secrets, secret} {
		if err := os.Chown(path, imageUser, imageUser); err != nil {
			t.Fatal(err)
		}
	}
	c.configure(map[string][]string{
		"/tmp":            {"tmpfs", "tmpfs", "nosuid,nodev,noexec,mode=1777,size=64m"},
		"/var/lib/boardd": {"bind", data, "bind,rw,nosuid,nodev,noexec"},
		"/run/secrets":    {"bind", secrets, "bind,ro,nosuid,nodev,noexec"},
	})
	t.Cleanup(func() { _ = exec.Command("runc", "--root", c.state, "delete", "--force", c.id).Run() }) // of a test that failed
	return c
}

// configure changes the bundle's configuration. The mounts have a type, a source and options.
func (c *container) configure(mounts map[string][]string) {
	c.Helper()
	path := filepath.Join(c.bundle, "config.json")
	text, err := os.ReadFile(path)
	if err != nil {
		c.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		c.Fatal(err)
	}
	process, root := config["process"].(map[string]any), config["root"].(map[string]any)
	if user := fmt.Sprint(process["user"]); user != fmt.Sprintf("map[gid:%d uid:%d]", imageUser, imageUser) {
		c.Errorf("the image runs as %s", user)
	}
	process["terminal"], process["capabilities"], root["readonly"] = false, map[string]any{}, true
	process["args"] = append(process["args"].([]any), "--drain-delay", "0s")
	list := slices.DeleteFunc(config["mounts"].([]any), func(m any) bool { return m.(map[string]any)["destination"] == "/var/lib/boardd" }) // the volume
	for at, m := range mounts {
		list = append(list, map[string]any{"destination": at, "type": m[0], "source": m[1], "options": strings.Split(m[2], ",")})
	}
	config["mounts"] = list
	if text, err = json.Marshal(config); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		c.Fatal(err)
	}
}

// boardd runs a command in the container that is running.
func (c *container) boardd(args ...string) string {
	c.Helper()
	return c.exec(append([]string{"/usr/bin/boardd"}, args...)...)
}

func (c *container) exec(args ...string) string {
	c.Helper()
	return must(c.T, "", nil, append([]string{"runc", "--root", c.state, "exec", "--env", "BOARDD_TOKEN_FILE=/run/secrets/boardd-root", c.id}, args...)...)
}

// run runs the container until something was done in it, and ends it as its image wants.
func (c *container) run(stop string, do func()) {
	c.Helper()
	log, err := os.Create(filepath.Join(c.TempDir(), "log"))
	if err != nil {
		c.Fatal(err)
	}
	defer log.Close()
	command := exec.Command("runc", "--root", c.state, "run", "--bundle", c.bundle, c.id)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		c.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	said := func() string {
		text, _ := os.ReadFile(log.Name()) // what is not there is not shown
		return string(text)
	}
	testserver.Eventually(c, "the container is healthy", func() bool {
		select {
		case err := <-ended:
			c.Fatalf("the container ended: %v\n%s", err, said())
		default:
		}
		_, err := run(c.T, "", nil, append([]string{"runc", "--root", c.state, "exec", c.id}, c.health...)...)
		return err == nil
	})
	do()
	must(c.T, "", nil, "runc", "--root", c.state, "kill", c.id, stop)
	if err := <-ended; err != nil {
		c.Errorf("the container ended: %v\n%s", err, said())
	}
}

// runs runs the image of a release: works a job, ends it, and looks for what it kept.
func runs(t *testing.T, first, unpacked, commit string) {
	image := filepath.Join(first, "boardd_"+version+"_image.tar")
	c := newContainer(t, image)
	var i inspected
	if err := json.Unmarshal([]byte(must(t, "", nil, "skopeo", "inspect", "--config", "--raw", "oci-archive:"+image)), &i); err != nil {
		t.Fatal(err)
	}
	_, volume := i.Config.Volumes["/var/lib/boardd"]
	_, port := i.Config.ExposedPorts["7422/tcp"]
	if i.Config.Labels["org.opencontainers.image.revision"] != commit || !volume || !port || len(i.Config.Healthcheck.Test) < 2 || i.Config.Healthcheck.Test[0] != "CMD" {
		t.Fatalf("the image says %+v", i)
	}
	c.health = i.Config.Healthcheck.Test[1:]
	c.files(unpacked)
	c.run(i.Config.StopSignal, func() {
		if said := c.exec(c.health...); said != "ready\n" {
			t.Errorf("asked for its health, the container says %q", said)
		}
		for _, driver := range []string{"embedded", "postgres", "redis", "zookeeper"} {
			if list := c.boardd("plugin", "list"); !strings.Contains(list, driver) {
				t.Errorf("boardd plugin list does not have %s:\n%s", driver, list)
			}
		}
		c.boardd("job", "post", "first")
		if out := c.boardd("worker", "run", "--until-empty", "--", "/usr/bin/boardd", "version"); !strings.Contains(out, "boardd: 1 consumed") {
			t.Errorf("the worker says %s", out)
		}
		c.boardd("job", "post", "second")
	})
	c.run(i.Config.StopSignal, func() {
		if list := c.boardd("job", "list"); !strings.Contains(list, "second") || strings.Contains(list, "first") {
			t.Errorf("after it was run again the board has:\n%s", list)
		}
	})
}

// files checks that the image has the programs of the archive, and nothing that its user
// could change but its data.
func (c *container) files(unpacked string) {
	c.Helper()
	root := filepath.Join(c.bundle, "rootfs")
	for _, program := range programs {
		want, err := os.ReadFile(filepath.Join(unpacked, program))
		if err != nil {
			c.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(root, "usr", "lib", "boardd", program)); err != nil || !bytes.Equal(got, want) {
			c.Errorf("the image has another %s: %d bytes in place of %d, %v", program, len(got), len(want), err)
		}
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, owner, mode := strings.TrimPrefix(path, root), info.Sys().(*syscall.Stat_t), info.Mode() //nolint:forcetypeassert // this is Linux
		want := [2]uint32{0, 0}
		if name == "/var/lib/boardd" {
			want = [2]uint32{imageUser, imageUser}
		}
		open := mode&fs.ModeSymlink == 0 && mode.Perm()&0o022 != 0
		if [2]uint32{owner.Uid, owner.Gid} != want || open != (name == "/tmp") || mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			c.Errorf("%s is %v and of %d:%d", name, mode, owner.Uid, owner.Gid)
		}
		return nil
	})
	if err != nil {
		c.Error(err)
	}
	for name, want := range map[string]fs.FileMode{"var/lib/boardd": fs.ModeDir | 0o700, "tmp": fs.ModeDir | fs.ModeSticky | 0o777} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Mode() != want {
			c.Errorf("%s: %v, %v; want %v", name, info, err, want)
		}
	}
}
