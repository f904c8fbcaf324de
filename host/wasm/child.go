package wasm

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/boardd/boardd/sdk/job"
)

// Child returns the command that a child process is: this program, with
// ChildArgument as its first argument and nothing set of what the engine sets
// (standard streams, files, environment, process attributes). The program calls
// ChildMain then, and exits with what it returns.
type Child func(ctx context.Context) *exec.Cmd

// ChildArgument is the first argument of a child process.
const ChildArgument = "policy-child"

// What a child is for.
const (
	compileMode = "compile"
	runMode     = "run"
)

// Bounds of child processes.
const (
	CompileTime   = 10 * time.Second // of a processor; then a compilation is killed
	CompileWait   = 2 * time.Minute  // then one is killed that got no processor for so long
	CompileMemory = 2 << 30          // bytes of address space of a compilation
	CallTime      = 5 * time.Second  // then a process that does not answer is killed; fuel ends a call long before
	StartTime     = 30 * time.Second // the same, for its start
)

// order is what a child is told first, as JSON in a frame.
type order struct {
	CacheDir string
	Name     string
	Digest   string
	Fuel     Fuel
	Globals  int
	Exports  map[string]bool
	Module   int // bytes of the module that follows
	Form     int // bytes of the configuration that follows it
}

// ChildMain is all that a child process does. It returns the exit code.
func ChildMain(args []string) int {
	if len(args) != 1 {
		return 2
	}
	confine(args[0])
	var err error
	switch args[0] {
	case compileMode:
		err = compileChild(os.Stdin)
	case runMode:
		err = runChild(os.Stdin, os.Stdout)
	default:
		return 2
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// readOrder reads what a child is told.
func readOrder(r io.Reader) (o order, module, form []byte, err error) {
	var size uint32
	if err = binary.Read(r, le, &size); err != nil {
		return o, nil, nil, err
	}
	text := make([]byte, size)
	if _, err = io.ReadFull(r, text); err != nil {
		return o, nil, nil, err
	}
	if err = json.Unmarshal(text, &o); err != nil {
		return o, nil, nil, err
	}
	both := make([]byte, o.Module+o.Form)
	_, err = io.ReadFull(r, both)
	return o, both[:o.Module], both[o.Module:], err
}

func writeOrder(w io.Writer, o order, module, form []byte) error {
	o.Module, o.Form = len(module), len(form)
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	_ = binary.Write(b, le, uint32(len(text))) // the writer keeps its error
	_, _ = b.Write(text)
	_, _ = b.Write(module)
	_, _ = b.Write(form)
	return b.Flush()
}

var le = binary.LittleEndian

// compileChild compiles a module into the cache.
func compileChild(in io.Reader) error {
	_ = seal(files) // as far as the kernel can
	o, b, _, err := readOrder(in)
	if err != nil {
		return err
	}
	ctx := experimental.WithCompilationWorkers(context.Background(), 1)
	cache, err := wazero.NewCompilationCacheWithDir(o.CacheDir)
	if err != nil {
		return err
	}
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(false).WithCompilationCache(cache))
	_, err = r.CompileModule(ctx, b)
	return err
}

// codeFolder is where the compiled code of a module is kept: each has its own, so
// that it can be taken away.
func (e *Engine) codeFolder(digest string) string { return filepath.Join(e.config.CacheDir, digest) }

// compileOnce compiles a module unless its code is there.
func (e *Engine) compileOnce(ctx context.Context, digest string, b []byte) error {
	e.mu.Lock()
	done := e.compiled[digest]
	e.mu.Unlock()
	if done {
		return nil
	}
	if err := e.compileInChild(ctx, digest, b); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.compiled[digest] = true
	return nil
}

// Prune takes the compiled code away of modules that are not loaded and that nobody
// wants to keep.
func (e *Engine) Prune(keep func(digest string) bool) error {
	if e.config.Child == nil || e.config.CacheDir == "" {
		return nil
	}
	entries, err := os.ReadDir(e.config.CacheDir)
	if err != nil {
		return err
	}
	var failures []error
	for _, entry := range entries {
		digest := entry.Name()
		if keep(digest) {
			continue
		}
		e.mu.Lock() // so that nobody begins to load it
		if e.loaded[digest] == nil {
			delete(e.compiled, digest)
			failures = append(failures, os.RemoveAll(e.codeFolder(digest)))
		}
		e.mu.Unlock()
	}
	return errors.Join(failures...)
}

// compileInChild compiles a module into the cache, in a process that may take so
// much time and memory and no more.
func (e *Engine) compileInChild(ctx context.Context, digest string, b []byte) error {
	ctx, cancel := context.WithTimeout(ctx, CompileWait)
	defer cancel()
	cmd := e.config.Child(ctx)
	cmd.Args = append(cmd.Args, compileMode)
	setApart(cmd)
	var said strings.Builder
	cmd.Stderr = &limited{w: &said, left: 4 << 10}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return &job.Error{Kind: job.Unavailable, Message: "the process that compiles policies can't be started", Err: err}
	}
	_ = writeOrder(in, order{CacheDir: e.codeFolder(digest)}, b, nil) // a process that died says so below
	_ = in.Close()
	err = cmd.Wait()
	switch {
	case err != nil && cmd.ProcessState != nil && cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime() >= CompileTime-time.Second/2:
		return job.Errorf(job.Invalid, "the module takes more than %s of a processor to compile: make its functions smaller", CompileTime)
	case ctx.Err() != nil:
		return job.Errorf(job.Unavailable, "the server got no processor time to compile the module: try again later")
	case err != nil:
		first, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
		return job.Errorf(job.Invalid, "the module does not compile, or not in %d MiB of memory (%s): %s", CompileMemory>>20, err, first)
	}
	return nil
}

// limited keeps the beginning of what is written.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	if _, err := l.w.Write(b[:n]); err != nil {
		return 0, err
	}
	return len(b), nil
}

// errSilent is why a process was killed.
var errSilent = errors.New("it did not answer in time")
