package wasm

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/boardd/boardd/host/wasm/module"
	"github.com/boardd/boardd/sdk/policy/abi"
)

// guestKey is where a call's context has its *host.
type guestKey struct{}

// host is what the functions that a module imports know of its instance.
type host struct {
	random *rand.ChaCha8 // begins anew with each call
	drawn  int           // bytes of this call
	logged int           // bytes of this call
	said   []byte        // the last of what was written to standard output and error
	log    func(level int, text string)
}

// reset begins a call.
func (h *host) reset() {
	h.random, h.drawn = nil, 0
	h.logged, h.said = 0, h.said[:0]
}

func (h *host) line(level int, text []byte) {
	h.said = append(h.said[:0], text[:min(len(text), abi.MaxLog)]...)
	if n := min(len(text), abi.MaxLog, abi.MaxLogBytes-h.logged); n > 0 && h.log != nil {
		h.logged += n
		h.log(level, string(text[:n]))
	}
}

func hostOf(ctx context.Context) *host { return ctx.Value(guestKey{}).(*host) }

// Numbers of WASI.
const (
	success   = 0
	badFile   = 8
	badMemory = 21
	noSystem  = 52
)

// epoch is the time of guests that ask a clock.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// errExit is the answer to a guest that ends its process.
var errExit = errors.New("the guest called proc_exit")

// offer makes everything that modules may import.
func offer(ctx context.Context, r wazero.Runtime) error {
	log := api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
		text, ok := m.Memory().Read(uint32(stack[1]), uint32(stack[2]))
		if !ok {
			panic(errors.New("the text to log lies outside of the memory"))
		}
		hostOf(ctx).line(int(int32(uint32(stack[0]))), text)
	})
	i32 := api.ValueTypeI32
	_, err := r.NewHostModuleBuilder(abi.ModuleHost).NewFunctionBuilder().
		WithGoModuleFunction(log, []api.ValueType{i32, i32, i32}, nil).Export(abi.ImportLog).Instantiate(ctx)
	if err != nil {
		return err
	}
	wasi := r.NewHostModuleBuilder(abi.ModuleWASI)
	for name, t := range module.WASI {
		f, ok := stubs[name]
		if !ok {
			f = missing
		}
		wasi.NewFunctionBuilder().WithGoModuleFunction(wrap(f, len(t.Results) > 0), kinds(t.Params), kinds(t.Results)).Export(name)
	}
	_, err = wasi.Instantiate(ctx)
	return err
}

func kinds(types []module.Type) []api.ValueType {
	list := make([]api.ValueType, len(types))
	for i, t := range types {
		list[i] = map[module.Type]api.ValueType{module.I32: api.ValueTypeI32, module.I64: api.ValueTypeI64}[t]
	}
	return list
}

// A stub answers a function of WASI. Of an argument of 32 bits only the lower
// half of its slot counts.
type stub func(h *host, m api.Memory, args []uint64) (errno uint32)

func wrap(f stub, result bool) api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		errno := f(hostOf(ctx), m.Memory(), stack)
		if result {
			stack[0] = uint64(errno)
		}
	}
}

func missing(*host, api.Memory, []uint64) uint32 { return noSystem }
func noFile(*host, api.Memory, []uint64) uint32  { return badFile }

// stubs are those that do something; the others say that there is no such thing.
var stubs = map[string]stub{
	"args_get":          func(*host, api.Memory, []uint64) uint32 { return success },
	"args_sizes_get":    nothing,
	"clock_res_get":     func(_ *host, m api.Memory, a []uint64) uint32 { return put64(m, a[1], 1) },
	"clock_time_get":    func(_ *host, m api.Memory, a []uint64) uint32 { return put64(m, a[2], uint64(epoch)) },
	"environ_get":       func(*host, api.Memory, []uint64) uint32 { return success },
	"environ_sizes_get": nothing,
	"fd_close":          noFile,
	"fd_fdstat_get":     fileStatus,
	"fd_prestat_get":    noFile,
	"fd_write":          write,
	"proc_exit":         func(*host, api.Memory, []uint64) uint32 { panic(errExit) },
	"random_get":        random,
	"sched_yield":       func(*host, api.Memory, []uint64) uint32 { return success },
}

func put64(m api.Memory, at, v uint64) uint32 {
	if !m.WriteUint64Le(uint32(at), v) {
		return badMemory
	}
	return success
}

// nothing answers how many arguments there are, or variables: none, of no bytes.
func nothing(_ *host, m api.Memory, a []uint64) uint32 {
	if !m.WriteUint32Le(uint32(a[0]), 0) || !m.WriteUint32Le(uint32(a[1]), 0) {
		return badMemory
	}
	return success
}

// fileStatus says of the three that every program has that they are terminals.
func fileStatus(_ *host, m api.Memory, a []uint64) uint32 {
	if uint32(a[0]) > 2 {
		return badFile
	}
	status := make([]byte, 24)
	status[0] = 2 // a character device
	if !m.Write(uint32(a[1]), status) {
		return badMemory
	}
	return success
}

// write logs what goes to standard output and error.
func write(h *host, m api.Memory, a []uint64) uint32 {
	level := map[uint32]int{1: 1, 2: 2}[uint32(a[0])]
	if level == 0 {
		return badFile
	}
	vectors, ok := m.Read(uint32(a[1]), uint32(min(uint64(uint32(a[2])), 64))*8)
	if !ok {
		return badMemory
	}
	var text []byte
	total := uint32(0)
	for v := range slices.Chunk(vectors, 8) {
		part, ok := m.Read(binary.LittleEndian.Uint32(v), binary.LittleEndian.Uint32(v[4:]))
		if !ok {
			return badMemory
		}
		total += uint32(len(part))
		text = append(text, part[:min(len(part), abi.MaxLog-len(text))]...)
	}
	h.line(level, text)
	if !m.WriteUint32Le(uint32(a[3]), total) {
		return badMemory
	}
	return success
}

// maxRandom is how many random bytes a call gets: a runtime wants a few for its
// start, and making them costs more than the fuel for a call.
const maxRandom = 4 << 10

// random gives the same bytes in each call.
func random(h *host, m api.Memory, a []uint64) uint32 {
	n := uint32(a[1])
	if n > maxRandom || h.drawn+int(n) > maxRandom {
		return noSystem
	}
	h.drawn += int(n)
	b, ok := m.Read(uint32(a[0]), n)
	if !ok {
		return badMemory
	}
	if h.random == nil {
		h.random = rand.NewChaCha8([32]byte{})
	}
	_, _ = h.random.Read(b)
	return success
}
