package testserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testneed"
)

// zooJars is what a ZooKeeper server of Debian needs on its class path, in this
// order: in Debian's 3.9 the jar zookeeper has an old copy of what is in jute's.
var zooJars = []string{
	"zookeeper-jute", "zookeeper", "slf4j-api", "slf4j-simple", "metrics-core", "snappy-java",
	"netty-handler", "netty-transport", "netty-buffer", "netty-common", "netty-codec", "netty-resolver",
	"netty-transport-native-epoll", "netty-transport-native-unix-common",
}

// zooStart is how long a server may take to answer, on a machine that does much
// else.
const zooStart = 2 * time.Minute

// ZooKeeperOptions says what a private ZooKeeper is like. The zero value is one
// server with the settings that TaskFlow needs.
type ZooKeeperOptions struct {
	Members int      // 1 or, for an ensemble, 3; 0: 1
	Fast    bool     // data in memory and no fsync, for tests that kill nothing
	Config  []string // more lines for zoo.cfg
	Java    []string // more arguments for java, such as -Djute.maxbuffer=...

	// TLS has the servers listen for TLS as well, see Secure; clients need a
	// certificate of the same authority.
	TLS *Certificates
}

// ZooKeeperEnsemble is a private ZooKeeper: one server, or several that elect a
// leader. Servers are numbered from 0.
type ZooKeeperEnsemble struct {
	t       testing.TB
	members []*zooMember
}

type zooMember struct {
	addr    string // HOST:PORT for clients
	secure  string // likewise, with TLS
	dir     string
	config  string
	java    []string
	process *exec.Cmd
	ended   chan struct{}
}

// ZooKeeper starts a private ZooKeeper from Debian's package, waits until it
// serves, and stops it when the test ends. All four-letter words are allowed.
func ZooKeeper(t testing.TB, o ZooKeeperOptions) *ZooKeeperEnsemble {
	t.Helper()
	z := &ZooKeeperEnsemble{t: t}
	java := append(zooJava(t), o.Java...)
	if o.Fast {
		java = append([]string{"-Dzookeeper.forceSync=no"}, java...)
	}
	n := max(o.Members, 1)
	var ring strings.Builder
	for i := range n {
		z.members = append(z.members, &zooMember{addr: freeAddr(t), dir: zooDir(t, o.Fast)})
		if n > 1 {
			fmt.Fprintf(&ring, "server.%d=127.0.0.1:%s:%s\n", i+1, port(freeAddr(t)), port(freeAddr(t)))
		}
	}
	for i, m := range z.members {
		m.java = java
		m.config = fmt.Sprintf("tickTime=500\ninitLimit=40\nsyncLimit=20\ndataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\n"+
			"4lw.commands.whitelist=*\nadmin.enableServer=false\nmaxClientCnxns=0\n%s%s\n",
			m.dir, port(m.addr), ring.String(), strings.Join(o.Config, "\n"))
		if o.TLS != nil {
			m.secure = freeAddr(t)
			m.config += zooTLS(o.TLS, m.secure)
		}
		zooWrite(t, filepath.Join(m.dir, "zoo.cfg"), m.config)
		if n > 1 {
			zooWrite(t, filepath.Join(m.dir, "myid"), fmt.Sprint(i+1))
		}
	}
	t.Cleanup(func() {
		for i := range z.members {
			z.Kill(i)
		}
	})
	for i := range z.members {
		z.launch(i)
	}
	for i := range z.members {
		z.await(i)
	}
	return z
}

// zooTLS returns the lines of zoo.cfg for a port with TLS.
func zooTLS(c *Certificates, addr string) string {
	return fmt.Sprintf("secureClientPort=%s\nsecureClientPortAddress=127.0.0.1\nserverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"+
		"ssl.keyStore.location=%s\nssl.keyStore.type=PEM\nssl.trustStore.location=%s\nssl.trustStore.type=PEM\nssl.clientAuth=need\n",
		port(addr), c.ServerBoth, c.CA)
}

// zooFolderEnv names a folder with the jars of another version of ZooKeeper, which
// the tests are run against in place of the installed one. Of what is listed in
// zooJars an older one needs only a part, and log4j instead.
const zooFolderEnv = "BOARDD_TEST_ZOOKEEPER_JARS"

// zooJava returns the arguments of java before the class to run.
func zooJava(t testing.TB) []string {
	t.Helper()
	testneed.Program(t, "java")
	folder, jars := os.Getenv(zooFolderEnv), zooJars
	other := folder != ""
	if other {
		jars = append(slices.Clip(jars), "log4j-1.2")
	} else {
		folder = "/usr/share/java"
	}
	var paths []string
	for _, jar := range jars {
		path := filepath.Join(folder, jar+".jar")
		_, err := os.Stat(path)
		switch {
		case err == nil:
			paths = append(paths, path)
		case other && jar != "zookeeper":
		default:
			testneed.Skip(t, "ZooKeeper is not installed: there is no "+path)
		}
	}
	// The better of Java's compilers never earns here what it costs: a third of all that these tests compute.
	return []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", strings.Join(paths, ":")}
}

// zooDir makes a folder for a server's data, in memory if fast.
func zooDir(t testing.TB, fast bool) string {
	t.Helper()
	if !fast {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "zookeeper") //nolint:usetesting // in memory, wherever the test keeps its files
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func zooWrite(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr) // made by net itself
	return p
}

// Servers returns the addresses of all servers.
func (z *ZooKeeperEnsemble) Servers() []string {
	list := make([]string, len(z.members))
	for i, m := range z.members {
		list[i] = m.addr
	}
	return list
}

// Secure returns the addresses of all servers for TLS.
func (z *ZooKeeperEnsemble) Secure() []string {
	list := make([]string, len(z.members))
	for i, m := range z.members {
		list[i] = m.secure
	}
	return list
}

// Start starts a server that was killed and waits until it serves.
func (z *ZooKeeperEnsemble) Start(i int) {
	z.t.Helper()
	z.launch(i)
	z.await(i)
}

// Kill ends a server with SIGKILL and waits for its end.
func (z *ZooKeeperEnsemble) Kill(i int) { z.signal(i, syscall.SIGKILL) }

// Churn kills one server after another and starts it again, until the test is over.
func (z *ZooKeeperEnsemble) Churn() {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Second): // a start takes a processor for as long
			}
			z.Kill(i % len(z.members))
			z.Start(i % len(z.members))
		}
	}()
	z.t.Cleanup(func() {
		close(stop)
		<-stopped
	})
}

// Pause stops a server without ending it, until Resume.
func (z *ZooKeeperEnsemble) Pause(i int) { _ = z.members[i].process.Process.Signal(syscall.SIGSTOP) }

// Resume lets a server go on.
func (z *ZooKeeperEnsemble) Resume(i int) { _ = z.members[i].process.Process.Signal(syscall.SIGCONT) }

func (z *ZooKeeperEnsemble) signal(i int, s syscall.Signal) {
	m := z.members[i]
	if m.process == nil {
		return
	}
	_ = m.process.Process.Signal(s) // it may have ended
	<-m.ended
	m.process = nil
}

// Leader returns the number of the server that leads, or -1.
func (z *ZooKeeperEnsemble) Leader() int {
	for i, m := range z.members {
		if m.process == nil {
			continue
		}
		if text, err := m.word("srvr"); err == nil && strings.Contains(text, "Mode: leader") {
			return i
		}
	}
	return -1
}

// Dir returns the folder of a server's data.
func (z *ZooKeeperEnsemble) Dir(i int) string { return z.members[i].dir }

// Word asks a server with a four-letter word, such as "mntr".
func (z *ZooKeeperEnsemble) Word(i int, word string) string {
	z.t.Helper()
	text, err := z.members[i].word(word)
	if err != nil {
		z.t.Fatalf("%s: %v", word, err)
	}
	return text
}

// Says is Word of a server that may not answer: then it is empty.
func (z *ZooKeeperEnsemble) Says(i int, word string) string {
	text, _ := z.members[i].word(word) // no answer is one, too
	return text
}

func (z *ZooKeeperEnsemble) launch(i int) {
	z.t.Helper()
	m := z.members[i]
	log, err := os.OpenFile(filepath.Join(m.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		z.t.Fatal(err)
	}
	defer log.Close()
	args := append(slices.Clip(m.java), "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(m.dir, "zoo.cfg"))
	m.process = exec.Command("java", args...) //nolint:noctx // it outlives single steps of the test
	m.process.Stdout, m.process.Stderr = log, log
	m.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.process.Start(); err != nil {
		z.t.Fatal(err)
	}
	m.ended = make(chan struct{})
	go func(process *exec.Cmd, ended chan struct{}) {
		_ = process.Wait() // it is killed
		close(ended)
	}(m.process, m.ended)
}

// await waits until a server takes part.
func (z *ZooKeeperEnsemble) await(i int) {
	z.t.Helper()
	m := z.members[i]
	for deadline := time.Now().Add(zooStart); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if text, err := m.word("srvr"); err == nil && strings.Contains(text, "Mode: ") {
			return
		}
		select {
		case <-m.ended:
			z.t.Fatalf("ZooKeeper ended before it served:\n%s", m.log())
		default:
		}
	}
	z.t.Fatalf("ZooKeeper does not serve:\n%s", m.log())
}

func (m *zooMember) log() string {
	text, err := os.ReadFile(filepath.Join(m.dir, "server.log"))
	return string(text) + errorText(err)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (m *zooMember) word(word string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", m.addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	if err == nil && len(text) == 0 {
		err = errors.New("no answer")
	}
	return string(text), err
}
