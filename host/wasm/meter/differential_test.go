package meter_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/boardd/boardd/host/wasm/meter"
	"github.com/boardd/boardd/host/wasm/module"
	"github.com/boardd/boardd/internal/testneed"
)

var modules = flag.Int("modules", 24, "how many generated modules are compared")

// logs are what binaryen's generated modules import.
var logs = map[string]module.FuncType{
	"fuzzing-support.log-i32": {Params: []module.Type{module.I32}},
	"fuzzing-support.log-i64": {Params: []module.Type{module.I64}},
	"fuzzing-support.log-f32": {Params: []module.Type{module.F32}},
	"fuzzing-support.log-f64": {Params: []module.Type{module.F64}},
}

// generate makes a valid module of random bytes.
func generate(t *testing.T, seed uint64) []byte {
	t.Helper()
	program := testneed.Program(t, "wasm-opt")
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // repeatable
	input := make([]byte, 500+random.IntN(8000))
	for i := range input {
		input[i] = byte(random.Uint32())
	}
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out.wasm")
	if err := os.WriteFile(in, input, 0o600); err != nil {
		t.Fatal(err)
	}
	level := []string{"-O0", "-O1", "-O3"}[seed%3]
	args := []string{"--mvp-features", "--enable-sign-ext", "--enable-nontrapping-float-to-int", "--enable-multivalue", "-ttf", in, level, "-o", out}
	if seed%4 == 0 {
		args = append(args, "--enable-bulk-memory") // with which many are refused
	}
	run := exec.CommandContext(t.Context(), program, args...)
	if text, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// trace is what a module did, call by call.
type trace struct {
	calls  []string // name, results, what it logged
	memory []uint64 // digest after each call
	fuel   []int64  // used by each
}

// start instantiates a module.
func start(t *testing.T, b []byte, log func(string)) api.Module {
	t.Helper()
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig())
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	host := r.NewHostModuleBuilder("fuzzing-support")
	for name, typ := range map[string]api.ValueType{"log-i32": api.ValueTypeI32, "log-i64": api.ValueTypeI64, "log-f32": api.ValueTypeF32, "log-f64": api.ValueTypeF64} {
		host.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) {
			v := stack[0]
			if typ == api.ValueTypeI32 || typ == api.ValueTypeF32 {
				v = uint64(uint32(v))
			}
			log(fmt.Sprintf("%s %x", name, v))
		}), []api.ValueType{typ}, nil).Export(name)
	}
	if _, err := host.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := r.InstantiateWithConfig(ctx, b, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run calls every exported function in the order of their names. A trap ends
// it, since memory is then whatever it is.
func run(t *testing.T, b []byte, fuel func(i int) int64) (tr trace) {
	t.Helper()
	var lines []string
	m := start(t, b, func(s string) { lines = append(lines, s) })
	functions := m.ExportedFunctionDefinitions()
	names := slices.Sorted(func(yield func(string) bool) {
		for n := range functions {
			if !yield(n) {
				return
			}
		}
	})
	tank, _ := m.ExportedGlobal(meter.FuelExport).(api.MutableGlobal)
	for i, name := range names {
		lines = lines[:0]
		if tank != nil {
			tank.Set(uint64(fuel(i)))
		}
		params := make([]uint64, len(functions[name].ParamTypes()))
		for p, typ := range functions[name].ParamTypes() {
			params[p] = map[api.ValueType]uint64{api.ValueTypeI32: 7, api.ValueTypeI64: 1 << 40, api.ValueTypeF32: api.EncodeF32(1.5), api.ValueTypeF64: api.EncodeF64(-2.25)}[typ]
		}
		results, err := m.ExportedFunction(name).Call(t.Context(), params...)
		for k, typ := range functions[name].ResultTypes() {
			if err == nil && (typ == api.ValueTypeI32 || typ == api.ValueTypeF32) {
				results[k] = uint64(uint32(results[k]))
			}
		}
		line := fmt.Sprintf("%s %x %s", name, results, strings.Join(lines, ","))
		if err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			tr.calls = append(tr.calls, line+" "+first)
			return tr
		}
		tr.calls = append(tr.calls, line)
		if tank != nil {
			tr.fuel = append(tr.fuel, fuel(i)-int64(tank.Get()))
			if in := m.ExportedGlobal(meter.StackExport).Get(); in != 0 {
				t.Errorf("%s: %d slots of the stack were not given back", name, int32(in))
			}
		}
		digest := fnv.New64a()
		whole, _ := m.Memory().Read(0, m.Memory().Size())
		digest.Write(whole)
		tr.memory = append(tr.memory, digest.Sum64())
	}
	return tr
}

const plenty = 1 << 50

// A metered module does what the original does, costs the same each time, and
// stops where its fuel is short by one.
func TestSameAsOriginal(t *testing.T) {
	t.Parallel()
	calls, refused := 0, 0
	for seed := range uint64(*modules) {
		b := generate(t, seed)
		m, err := module.Read(b, module.Limits{Imports: logs})
		if err != nil && strings.Contains(err.Error(), "bulk memory") {
			refused++
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		metered := meter.Rewrite(m).Bytes
		want := run(t, b, nil)
		got := run(t, metered, func(int) int64 { return plenty })
		if !slices.Equal(want.calls, got.calls) || !slices.Equal(want.memory, got.memory) {
			t.Fatalf("seed %d differs\n got %q %x\nwant %q %x", seed, got.calls, got.memory, want.calls, want.memory)
		}
		calls += len(got.calls)
		exact := run(t, metered, func(i int) int64 {
			if i < len(got.fuel) {
				return got.fuel[i]
			}
			return plenty
		})
		if !slices.Equal(exact.calls, got.calls) || !slices.Equal(exact.fuel, got.fuel) {
			t.Fatalf("seed %d with just enough fuel\n got %q %d\nwant %q %d", seed, exact.calls, exact.fuel, got.calls, got.fuel)
		}
		if len(got.fuel) > 0 {
			short := run(t, metered, func(int) int64 { return got.fuel[0] - 1 })
			if len(short.fuel) > 0 && short.fuel[0] < got.fuel[0] {
				t.Fatalf("seed %d: a call that costs %d ran with less and took %d", seed, got.fuel[0], short.fuel[0])
			}
		}
	}
	if calls < *modules || refused > *modules/2 {
		t.Errorf("%d calls of %d modules, %d of them refused: too few to mean anything", calls, *modules, refused)
	}
	t.Logf("%d modules, %d of them refused, %d calls", *modules, refused, calls)
}

// What is rewritten is valid wherever the original is, and stays so if it is
// rewritten again after what was added is taken for the module's own.
func FuzzRewrite(f *testing.F) {
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x05\x03\x01\x00\x01"))
	f.Add(loop())
	runtime := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter())
	f.Cleanup(func() { _ = runtime.Close(context.Background()) })
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := module.Read(b, module.Limits{Imports: logs})
		if err != nil {
			return
		}
		original, err := runtime.CompileModule(t.Context(), b)
		if err != nil {
			return
		}
		_ = original.Close(t.Context())
		rewritten, err := runtime.CompileModule(t.Context(), meter.Rewrite(m).Bytes)
		if err != nil {
			t.Fatalf("valid before, and then: %v", err)
		}
		_ = rewritten.Close(t.Context())
	})
}

// loop is a module with a function of a loop, by hand.
func loop() []byte {
	body := []byte{
		1, 1, 0x7f, // one i32
		0x02, 0x40, 0x03, 0x40, // block, loop
		0x20, 1, 0x20, 0, 0x4e, 0x0d, 1, // leave it if local 1 >= parameter 0
		0x20, 1, 0x41, 1, 0x6a, 0x21, 1, 0x0c, 0, // count, go on
		0x0b, 0x0b, 0x20, 1, 0x0b,
	}
	b := []byte("\x00asm\x01\x00\x00\x00")
	for id, content := range map[byte][]byte{1: {1, 0x60, 1, 0x7f, 1, 0x7f}} {
		b = append(append(b, id, byte(len(content))), content...)
	}
	b = append(b, 3, 2, 1, 0, 5, 3, 1, 0, 1, 7, 5, 1, 1, 'f', 0, 0)
	code := append(binary.AppendUvarint([]byte{1}, uint64(len(body))), body...)
	return append(append(b, 10, byte(len(code))), code...)
}

func TestFuelAndStack(t *testing.T) {
	t.Parallel()
	m, err := module.Read(loop(), module.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	i := start(t, meter.Rewrite(m).Bytes, nil)
	tank := i.ExportedGlobal(meter.FuelExport).(api.MutableGlobal)
	used := func(n uint64) int64 {
		tank.Set(1 << 40)
		if r, err := i.ExportedFunction("f").Call(t.Context(), n); err != nil || r[0] != n {
			t.Fatalf("f(%d) = %v, %v", n, r, err)
		}
		return 1<<40 - int64(tank.Get())
	}
	one, ten := used(1), used(10)
	if each := (ten - one) / 9; each < 5 || used(1000)-one != 999*each {
		t.Errorf("1, 10 and 1000 rounds cost %d, %d, %d", one, ten, used(1000))
	}
	tank.Set(100)
	if _, err := i.ExportedFunction("f").Call(t.Context(), 1<<30); err == nil || int64(tank.Get()) >= 0 {
		t.Errorf("a long loop with little fuel: %v, %d left", err, int64(tank.Get()))
	}
}
