package wasm

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/boardd/boardd/host/wasm/meter"
	"github.com/boardd/boardd/sdk/policy/abi"
	"github.com/boardd/boardd/sdk/policy/block"
)

// pageSize is the processor's. That of a memory is 16 times as large, usually.
var pageSize = os.Getpagesize()

// roomSize is how large a block may get: what is asked of a guest, without what
// its alignment takes.
var roomSize = abi.MaxBlock - pageSize

// A runner runs blocks of one rule: an instance in this process, or a process.
// One goroutine uses it at a time. After an error it is closed.
type runner interface {
	// room is where a block is put. A later call may move it.
	room() []byte

	// run runs the block at the start of the room, and returns the fuel used.
	run(ctx context.Context, call abi.Call, total, records int) (used int64, err error)

	// reset makes the runner forget everything but the parameters.
	reset() error

	close()
}

// state is what every instance of a rule begins each call with.
type state struct {
	image   *image
	globals []uint64
	at      uint32 // of the block
}

// instance is an instance in this process.
type instance struct {
	module  *Module
	name    string
	fuel    *Fuel
	api     api.Module
	memory  *memory
	host    host
	ctx     context.Context //nolint:containedctx // carries host to the functions that are imported; no call can be ended by it
	tank    api.MutableGlobal
	depth   api.MutableGlobal
	globals []api.MutableGlobal
	calls   [abi.Explain + 1]api.Function
	stack   [2]uint64

	state  *state
	dirty  int // bytes of the block that the present or last call wrote
	keepTo int // until where reset left the memory as it was, from the block on
}

// newInstance makes an instance. With a state it begins there; otherwise it is
// initialized and configured.
func newInstance(p *pool, s *state) (*instance, error) {
	m := p.module
	i := &instance{module: m, name: p.name, fuel: &p.fuel}
	i.host.log = p.log
	i.ctx = context.WithValue(context.Background(), guestKey{}, &i.host)
	ctx := experimental.WithMemoryAllocator(i.ctx, newMemory(func(mem *memory) { i.memory = mem }))
	made, err := m.engine.runtime.InstantiateModule(ctx, m.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, fmt.Errorf("the module can't be instantiated: %w", err)
	}
	i.api = made
	i.bind()
	if s == nil {
		s, err = i.begin(p.form)
	} else {
		if more := s.image.bytes() - i.memory.size; more > 0 {
			i.api.Memory().Grow(uint32(more >> 16))
		}
		err = i.memory.become(s.image)
	}
	if err != nil {
		i.close()
		return nil, err
	}
	i.state = s
	i.setGlobals()
	return i, nil
}

// bind looks up everything by name once: each look-up makes a new object.
func (i *instance) bind() {
	variable := func(name string) api.MutableGlobal { g, _ := i.api.ExportedGlobal(name).(api.MutableGlobal); return g }
	i.tank, i.depth = variable(meter.FuelExport), variable(meter.StackExport)
	for n := range i.module.metered.Globals {
		i.globals = append(i.globals, variable(fmt.Sprint(meter.GlobalExport, n)))
	}
	for _, call := range callsOf {
		if i.module.exports[call.Export()] {
			i.calls[call] = i.api.ExportedFunction(call.Export())
		}
	}
}

// begin initializes and configures the instance, and takes its picture.
func (i *instance) begin(form []byte) (*state, error) {
	s := &state{}
	i.state = s
	i.tank.Set(uint64(i.fuel.Start))
	i.host.reset()
	if i.module.exports[abi.ExportInitialize] {
		if _, err := i.api.ExportedFunction(abi.ExportInitialize).Call(i.ctx); err != nil {
			return nil, i.fault(abi.ExportInitialize, err)
		}
	}
	at, err := i.api.ExportedFunction(abi.ExportAlloc).Call(i.ctx, abi.MaxBlock)
	if err != nil {
		return nil, i.fault(abi.ExportAlloc, err)
	}
	s.at = uint32(at[0])
	if _, ok := i.api.Memory().Read(s.at, abi.MaxBlock); !ok || s.at == 0 || s.at%abi.Alignment != 0 {
		return nil, &Fault{
			Kind: Protocol, Policy: i.name, Digest: i.module.digest, Call: abi.ExportAlloc,
			Text: fmt.Sprintf("it returned %d: want a multiple of %d with %d bytes of memory (%d in all)", s.at, abi.Alignment, abi.MaxBlock, i.api.Memory().Size()),
		}
	}
	if i.calls[abi.Configure] != nil {
		copy(i.room(), form) // a form is far smaller than a room
		if _, err := i.run(i.ctx, abi.Configure, len(form), 0); err != nil {
			return nil, err
		}
	}
	clear(i.room())
	s.at = uint32(align(int(s.at)))
	for _, g := range i.globals {
		s.globals = append(s.globals, g.Get())
	}
	s.image, err = i.memory.takeImage()
	return s, err
}

func (i *instance) setGlobals() {
	for n, g := range i.globals {
		g.Set(i.state.globals[n])
	}
	i.depth.Set(0)
}

func (i *instance) room() []byte {
	b, _ := i.api.Memory().Read(i.state.at, uint32(roomSize))
	return b
}

func (i *instance) run(_ context.Context, call abi.Call, total, records int) (int64, error) {
	f := i.calls[call]
	if f == nil {
		return 0, &Fault{Kind: Protocol, Policy: i.name, Digest: i.module.digest, Call: call.Export(), Text: "the module does not export it"}
	}
	i.clearBehind(total)
	i.dirty = total
	given := i.fuel.of(call, records)
	i.tank.Set(uint64(given))
	i.host.reset()
	i.stack = [2]uint64{uint64(i.state.at), uint64(uint32(total))}
	err := f.CallWithStack(i.ctx, i.stack[:])
	left := int64(i.tank.Get())
	if err != nil {
		return given - left, i.fault(call.Export(), err)
	}
	switch code := uint32(i.stack[0]); {
	case left < 0:
		return given - left, i.fault(call.Export(), errors.New("at its end"))
	case code == abi.OK:
		return given - left, nil
	case code == abi.Failed:
		return given - left, &Fault{Kind: Refused, Policy: i.name, Digest: i.module.digest, Call: call.Export(), Text: block.Text(i.room())}
	default:
		return given - left, &Fault{Kind: Protocol, Policy: i.name, Digest: i.module.digest, Call: call.Export(), Text: fmt.Sprintf("it returned %d: want 0 or 1", int32(code))}
	}
}

// clearBehind clears what an earlier block left behind this one.
func (i *instance) clearBehind(total int) {
	if end := i.keepTo - int(i.state.at); end > total {
		clear(i.room()[total:end])
	}
}

// fault says what a failed call did.
func (i *instance) fault(export string, err error) *Fault {
	f := &Fault{Kind: Trap, Policy: i.name, Digest: i.module.digest, Call: export}
	f.Text, f.Trace = split(err)
	switch {
	case uint32(i.depth.Get()) > meter.MaxStack:
		f.Kind, f.Text = OutStack, fmt.Sprintf("want at most %d slots for the frames of all running functions", meter.MaxStack)
	case int64(i.tank.Get()) < 0:
		f.Kind, f.Text = OutFuel, ""
	case len(i.host.said) > 0:
		f.Text += ": " + string(i.host.said)
	}
	return f
}

// errGrown is why an instance is not used again although nothing is wrong: its
// memory can't shrink, and the next call would see that.
var errGrown = errors.New("the memory grew")

func (i *instance) reset() (err error) {
	if i.memory.size != int(i.api.Memory().Size()) || i.memory.size != i.stateSize() {
		return errGrown
	}
	i.setGlobals()
	at := int(i.state.at)
	i.keepTo, err = i.memory.restore(i.state.image, at, at+i.dirty)
	return err
}

// align rounds up to a page, so that a block shares none with anything else.
func align(at int) int { return (at + pageSize - 1) &^ (pageSize - 1) }

func (i *instance) stateSize() int { return i.state.image.bytes() }

func (i *instance) close() { _ = i.api.Close(context.Background()) }
