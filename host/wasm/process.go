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
	"sync"
	"time"

	"github.com/boardd/boardd/host/wasm/meter"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy/abi"
)

// process is a runner in a process of its own. Blocks go through memory that
// both share; what has to be said about them goes through pipes.
type process struct {
	pool   *pool
	once   sync.Once
	cmd    *exec.Cmd
	in     *os.File // it takes a deadline
	out    *bufio.Reader
	answer *os.File // what out reads from: it takes a deadline
	file   *os.File
	shared []byte
}

// request asks for one call.
type request struct {
	Call, Total, Records uint32
}

// reply says what came of it. Text bytes follow: a Fault as JSON; none if all
// went well.
type reply struct {
	Used int64
	Text uint32
}

// maxReply is the most that a process may say about a fault, in bytes.
const maxReply = 64 << 10

// startProcess starts a process that was charged; its end gives that back.
func startProcess(ctx context.Context, p *pool) (_ runner, err error) {
	r := &process{pool: p}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.file, r.shared, err = shareMemory(roomSize); err != nil {
		return nil, err
	}
	if err := r.launch(ctx); err != nil {
		return nil, &job.Error{Kind: job.Unavailable, Message: "the process that runs a policy can't be started", Err: err}
	}
	m := p.module
	told := order{CacheDir: p.engine.codeFolder(m.digest), Name: p.name, Digest: m.digest, Fuel: p.fuel, Globals: m.metered.Globals, Exports: m.exports}
	if err := r.tell(told, m.metered.Bytes, p.form, StartTime); err != nil {
		return nil, err
	}
	if _, err := r.reply(StartTime, "start"); err != nil {
		return nil, err
	}
	return r, nil
}

// tell writes what the process is told first. One that does not read it in time is killed by
// close: a module is more than a pipe holds.
func (r *process) tell(told order, module, form []byte, within time.Duration) error {
	err := r.in.SetWriteDeadline(time.Now().Add(within))
	if err == nil {
		err = writeOrder(r.in, told, module, form)
	}
	if err == nil {
		err = r.in.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		return r.lost("start", err)
	}
	return nil
}

// launch starts the process. It outlives the call that started it.
func (r *process) launch(ctx context.Context) error {
	r.cmd = r.pool.engine.config.Child(context.WithoutCancel(ctx))
	r.cmd.Args = append(r.cmd.Args, runMode)
	setApart(r.cmd)
	r.cmd.ExtraFiles = []*os.File{r.file}
	answer, out, err := os.Pipe()
	if err != nil {
		return err
	}
	r.answer, r.out = answer, bufio.NewReader(answer)
	r.cmd.Stdout = out
	defer out.Close()
	told, in, err := os.Pipe()
	if err != nil {
		return err
	}
	r.in, r.cmd.Stdin = in, told
	defer told.Close()
	if err := r.cmd.Start(); err != nil {
		r.cmd.Process = nil
		return err
	}
	return nil
}

func (r *process) room() []byte { return r.shared }

func (r *process) run(_ context.Context, call abi.Call, total, records int) (int64, error) {
	if err := binary.Write(r.in, le, request{Call: uint32(call), Total: uint32(total), Records: uint32(records)}); err != nil {
		return 0, r.lost(call.Export(), err)
	}
	used, err := r.reply(CallTime, call.Export())
	var fault *Fault
	if errors.As(err, &fault) && fault.Kind == Lost {
		used = r.pool.fuel.of(call, records) // nobody knows: it had all that it was given
	}
	return used, err
}

// reply waits for an answer. A process that gives none is killed by close.
func (r *process) reply(within time.Duration, export string) (int64, error) {
	if err := r.answer.SetReadDeadline(time.Now().Add(within)); err != nil {
		return 0, r.lost(export, err)
	}
	var head reply
	if err := binary.Read(r.out, le, &head); err != nil {
		return 0, r.lost(export, err)
	}
	if head.Text == 0 {
		return head.Used, nil
	}
	if head.Text > maxReply {
		return 0, r.lost(export, fmt.Errorf("an answer of %d bytes", head.Text))
	}
	text := make([]byte, head.Text)
	if _, err := io.ReadFull(r.out, text); err != nil {
		return 0, r.lost(export, err)
	}
	fault := &Fault{}
	if err := json.Unmarshal(text, fault); err != nil {
		return 0, r.lost(export, err)
	}
	return head.Used, fault
}

func (r *process) lost(export string, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errSilent
	}
	return &Fault{Kind: Lost, Policy: r.pool.name, Digest: r.pool.module.digest, Call: export, Text: err.Error()}
}

// reset has nothing to do: the process resets its instance after each call, and
// clears what the block leaves behind.
func (r *process) reset() error { return nil }

func (r *process) close() { r.once.Do(r.end) }

func (r *process) end() {
	if r.in != nil {
		_ = r.in.Close()
	}
	if r.cmd != nil && r.cmd.Process != nil {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait() // it was killed
	}
	if r.answer != nil {
		_ = r.answer.Close()
	}
	if r.file != nil {
		unshareMemory(r.file, r.shared)
	}
	r.pool.engine.budget.release(r.pool)
}

// runChild is the other side: it runs one instance until its input ends.
func runChild(in io.Reader, out io.Writer) error {
	input := bufio.NewReader(in)
	o, b, form, err := readOrder(input)
	if err != nil {
		return err
	}
	shared, err := sharedMemory(roomSize)
	if err != nil {
		return err
	}
	w := &worker{order: o, form: form, shared: shared, out: out}
	if err := w.start(b); err != nil {
		return w.reply(0, err)
	}
	if err := w.reply(0, nil); err != nil {
		return err
	}
	for {
		var q request
		if err := binary.Read(input, le, &q); err != nil {
			return nil //nolint:nilerr // the server closed its end
		}
		if int(q.Total) > len(shared) {
			return fmt.Errorf("a block of %d bytes", q.Total)
		}
		used, err := w.call(q)
		if err := w.reply(used, err); err != nil || w.instance == nil {
			return err
		}
	}
}

// worker is what a process has.
type worker struct {
	order

	form     []byte
	shared   []byte
	out      io.Writer
	pool     *pool
	instance *instance
}

// start makes the instance.
func (w *worker) start(b []byte) error {
	ctx := context.Background()
	e, err := New(ctx, Config{CacheDir: w.CacheDir, Fuel: w.Fuel, Instances: 1})
	if err != nil {
		return err
	}
	compiled, err := e.runtime.CompileModule(ctx, b)
	if err != nil {
		return err
	}
	_ = seal(nil) // the module has not run yet; a kernel that cannot is no reason to run nothing
	m := &Module{engine: e, digest: w.Digest, metered: meter.Metered{Globals: w.Globals}, exports: w.Exports, compiled: compiled}
	w.pool = &pool{engine: e, module: m, name: w.order.Name, form: w.form, fuel: w.Fuel}
	w.instance, err = newInstance(w.pool, nil)
	return err
}

// call runs one block: the whole of it is copied both ways, so that the guest
// sees nothing that changes under it.
func (w *worker) call(q request) (int64, error) {
	copy(w.instance.room()[:q.Total], w.shared)
	used, err := w.instance.run(context.Background(), abi.Call(q.Call), int(q.Total), int(q.Records))
	if err != nil {
		w.instance = nil // the server kills this process
		return used, err
	}
	copy(w.shared, w.instance.room()[:q.Total])
	state := w.instance.state
	if err := w.instance.reset(); err == nil {
		return used, nil
	}
	w.instance.close()
	w.instance, err = newInstance(w.pool, state)
	return used, err
}

func (w *worker) reply(used int64, err error) error {
	var text []byte
	if err != nil {
		fault := &Fault{}
		if !errors.As(err, &fault) {
			fault = &Fault{Kind: Trap, Policy: w.order.Name, Digest: w.Digest, Call: "start", Text: err.Error()}
		}
		var failed error
		if text, failed = json.Marshal(fault); failed != nil {
			return failed
		}
	}
	b, err := binary.Append(nil, le, reply{Used: used, Text: uint32(len(text))})
	if err != nil {
		return err
	}
	_, err = w.out.Write(append(b, text...))
	return err
}
