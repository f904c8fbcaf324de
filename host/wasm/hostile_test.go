package wasm_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/host/wasm/module"
	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// assemble makes a module of WebAssembly text, with a manifest.
func assemble(tb testing.TB, text, kinds string) []byte {
	tb.Helper()
	program := testneed.Program(tb, "wat2wasm")
	dir := tb.TempDir()
	in, out := filepath.Join(dir, "m.wat"), filepath.Join(dir, "m.wasm")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	if message, err := exec.CommandContext(tb.Context(), program, "--enable-all", "--no-check", "-o", out, in).CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, message)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		tb.Fatal(err)
	}
	return withManifest(tb, b, kinds)
}

func withManifest(tb testing.TB, b []byte, kinds string) []byte {
	tb.Helper()
	manifest := fmt.Sprintf(`{"name":"hostile","version":"1","abi":1,"kinds":[%s],"reasons":["no"]}`, kinds)
	b, err := policy.AddManifest(b, []byte(manifest))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// frame is a module with everything that it needs and what is given.
func frame(more string) string {
	return `(module
  (memory (export "memory") 16)
  (func (export "boardd_policy_abi_1"))
  (func (export "boardd_alloc") (param i32) (result i32) (i32.const 1024))
  ` + more + `)`
}

// score is a boardd_score with the given body, of which parameter 0 is the block.
func score(body string) string {
	return frame(`(func $score (export "boardd_score") (param $block i32) (param i32) (result i32) (local $out i32)
    (local.set $out (i32.add (local.get $block) (i32.load offset=32 (local.get $block))))
    ` + body + `)`)
}

// What is refused before anything is compiled.
func TestRefusedModules(t *testing.T) {
	t.Parallel()
	e := newEngine(t, wasm.Config{})
	for _, test := range []struct{ name, text, want string }{
		{"start section", frame(`(func $f) (start $f) (func (export "boardd_score") (param i32 i32) (result i32) (i32.const 0))`), "a start section; move its work to _initialize"},
		{"unknown import", `(module (import "env" "abort" (func (param i32 i32 i32 i32))))`, "the import env.abort is not offered; AssemblyScript: build with --use abort="},
		{"unknown WASI", `(module (import "wasi_snapshot_preview1" "fd_fly" (func)))`, "the import wasi_snapshot_preview1.fd_fly is not offered"},
		{"wrong type", `(module (import "boardd1" "log" (func (param i64))))`, "is of type (i64) -> (): want (i32, i32, i32) -> ()"},
		{"imported memory", `(module (import "env" "memory" (memory 1)))`, "is no function; define it in the module"},
		{"large memory", `(module (memory (export "memory") 257))`, "a memory of 257 pages: want at most 256 (16 MiB)"},
		{"large table", `(module (table 20001 funcref))`, "a table of 20001 elements: want at most 20000"},
		{"two memories", `(module (memory 1) (memory 1))`, "2 memories: want at most 1"},
		{"table that grows", frame(`(table 1 funcref) (func (param i32) (drop (table.grow 0 (ref.null func) (local.get 0))))`), "is not accepted; build without reference types"},
		{"table.copy", frame(`(table 1 funcref) (func (table.copy (i32.const 0) (i32.const 0) (i32.const 0)))`), "a table is fixed when a policy is loaded"},
		{"SIMD", frame(`(func (drop (v128.const i64x2 0 0)))`), "the instruction 0xfd is not accepted; build without SIMD"},
		{"threads", frame(`(func (drop (i32.atomic.load (i32.const 0))))`), "build without threads"},
		{"exceptions", frame(`(func try catch_all end)`), "build without exceptions"},
		{"tail call", frame(`(func $f return_call $f)`), "build without tail calls"},
		{"passive data", frame(`(data "x")`), "a data segment of kind 1; build without passive data"},
		{"memory64", `(module (memory i64 1))`, "flags 0x4; build for wasm32"},
		{"shared memory", `(module (memory 1 1 shared))`, "flags 0x3"},
		{"v128 global", `(module (memory 1) (global v128 (v128.const i64x2 0 0)))`, "the type v128; build without SIMD"},
		{"reference", `(module (func (param externref)))`, "a reference as a value; build without reference types"},
		{"reserved export", frame(`(global (export "boardd:fuel") i64 (i64.const 1))`), `the export "boardd:fuel" is there twice, no text, or begins with "boardd:"; rename it`},
		{"the meter's global", frame(`(func (global.set 0 (i64.const 999)))`), "function 2, offset 0x60: global 0 of 0"},
		{"the meter's function", frame(`(func (call 99))`), "function 99 of 3"},
		{"no memory", `(module)`, "the module has no memory"},
		{"memory not exported", `(module (memory 1))`, "exports no memory named memory"},
		{"no marker", `(module (memory (export "memory") 1))`, "does not export boardd_policy_abi_1, so it is no policy"},
		{"no score", frame(``), "does not export boardd_score; define it, or take it out of the manifest"},
		{"score of another type", frame(`(func (export "boardd_score") (param i32) (result i32) (i32.const 0))`), "is of type (i32) -> (i32): want (i32, i32) -> (i32)"},
		{"wrong operands", score(`(drop) (i32.const 0)`), "does not compile"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := e.Load(t.Context(), assemble(t, test.text, `"ordering"`))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
}

// section appends a section by its parts.
func section(b []byte, id byte, parts ...[]byte) []byte {
	content := bytes.Join(parts, nil)
	b = binary.AppendUvarint(append(b, id), uint64(len(content)))
	return append(b, content...)
}

func uleb(n uint64) []byte { return binary.AppendUvarint(nil, n) }

// one is a module with one function of the given code, locals and end included.
func one(code []byte) []byte {
	b := section([]byte("\x00asm\x01\x00\x00\x00"), 1, []byte{1, 0x60, 0, 0})
	b = section(b, 3, []byte{1, 0})
	b = section(b, 5, []byte{1, 0, 1})
	return section(b, 10, []byte{1}, uleb(uint64(len(code))), code)
}

// What would be expensive to compile, or only to read.
func TestBombs(t *testing.T) {
	t.Parallel()
	head := []byte("\x00asm\x01\x00\x00\x00")
	repeat := func(n int, code ...byte) []byte { return bytes.Repeat(code, n) }
	nested := func(n int) []byte {
		return bytes.Join([][]byte{{0}, repeat(n, 0x02, 0x40), repeat(n, 0x0b), {0x0b}}, nil)
	}
	table := func(n int) []byte {
		return bytes.Join([][]byte{{0, 0x41, 0, 0x0e}, uleb(uint64(n)), repeat(n+1, 0), {0x0b}}, nil)
	}
	locals := func(n uint64, blocks int) []byte {
		return bytes.Join([][]byte{{1}, uleb(n), {0x7f}, repeat(blocks, 0x02, 0x40, 0x0b), {0x0b}}, nil)
	}
	operands := func(n int) []byte {
		return bytes.Join([][]byte{{0}, repeat(n, 0x41, 0), repeat(n, 0x1a), {0x0b}}, nil)
	}
	for _, test := range []struct {
		name   string
		module []byte
		want   string // empty: accepted
	}{
		{"2^32 locals", one(locals(1<<32-1, 0)), "4294967295 locals: want at most 2000"},
		{"many locals", one(locals(module.MaxLocals+1, 0)), "2001 locals: want at most 2000"},
		{"as many locals", one(locals(module.MaxLocals, 0)), ""},
		{"67 M functions' codes", section(head, 10, uleb(67_000_000)), "67000000 functions' codes: want at most 20000"},
		{"67 M types", section(head, 1, uleb(67_000_000)), "67000000 types: want at most 2000"},
		{"more than there are", section(head, 1, uleb(2000)), "2000 types in 0 bytes"},
		{"deep nesting", one(nested(module.MaxNesting)), "more than 1024 blocks in blocks"},
		{"as deep nesting", one(nested(module.MaxNesting - 1)), ""},
		{"large br_table", one(table(module.MaxBranchTable + 1)), "4097 labels of a br_table: want at most 4096; split the switch"},
		{"as large br_table", one(table(module.MaxBranchTable)), ""},
		{"blocks times locals", one(locals(module.MaxLocals, 132)), "132 blocks times 2000 locals: want at most 262144 in all; split the function"},
		{"as many blocks times locals", one(locals(module.MaxLocals, 131)), ""},
		{"operands", one(operands(module.MaxOperands + 1)), "more than 1024 operands; use locals"},
		{"as many operands", one(operands(module.MaxOperands)), ""},
		{"long function", one(append(repeat(module.MaxBody, 0x01), 0x0b)), "a function of 131073 bytes: want at most 131072"},
		{"large", append(one([]byte{0, 0x0b}), section(nil, 0, []byte{1, 'x'}, make([]byte, module.DefaultBytes))...), "want at most 4194304; strip"},
		{"component", []byte("\x00asm\x0d\x00\x01\x00"), "this is a component; build a core module"},
		{"text", []byte("(module)"), "this is no WebAssembly module"},
		{"empty", nil, "this is no WebAssembly module"},
		{"sections out of order", section(section(head, 3, []byte{0}), 1, []byte{0}), "section 1 is out of order or there twice"},
		{"cut section", append(bytes.Clone(head), 1, 50), "has 50 bytes and the module only 0 more"},
		{"code after the end", one([]byte{0, 0x0b, 0x0b}), "the function goes on after its end"},
		{"no end", one([]byte{0, 0x01}), "ends too early"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := module.Read(test.module, module.Limits{})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
}

// What goes wrong while it runs. Each is run in this process and in one of its
// own; the next call of a good policy is answered in either.
func TestFaults(t *testing.T) {
	t.Parallel()
	here, apart := newEngine(t, wasm.Config{Instances: 1}), newEngine(t, wasm.Config{Instances: 1, Child: child})
	for _, test := range []struct {
		name, text string
		kind       wasm.FaultKind // empty: any error
		want       string
	}{
		{"endless loop", score(`(loop (br 0)) (i32.const 0)`), wasm.OutFuel, "boardd_score: it used up its fuel"},
		{"2^40 calls without a loop", score(`(call $f40) (i32.const 0)) ` + doubling(40) + `(func (nop)`), wasm.OutFuel, "it used up its fuel"},
		{"deep recursion", frame(`(func $r (param i32) (result i32) (i32.add (call $r (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
			(func (export "boardd_score") (param i32 i32) (result i32) (call $r (i32.const 0)))`), wasm.OutStack, "its calls are nested too deeply: want at most 65536 slots"},
		{"indirect recursion", frame(`(table 1 funcref) (elem (i32.const 0) $r) (type $t (func (param i32 i32) (result i32)))
			(func $r (export "boardd_score") (type $t) (call_indirect (type $t) (local.get 0) (local.get 1) (i32.const 0)))`), wasm.OutStack, "nested too deeply"},
		{"filling memory", score(`(loop (memory.fill (i32.const 0) (i32.const 1) (i32.const 1000000)) (br 0)) (i32.const 0)`), wasm.OutFuel, "it used up its fuel"},
		{"copying memory", score(`(loop (memory.copy (i32.const 0) (i32.const 8) (i32.const 1000000)) (br 0)) (i32.const 0)`), wasm.OutFuel, "it used up its fuel"},
		{"growing memory", score(`(loop (drop (memory.grow (i32.const 1))) (br 0)) (i32.const 0)`), wasm.OutFuel, "it used up its fuel"},
		{"unreachable", score(`unreachable`), wasm.Trap, "boardd_score: it trapped: unreachable"},
		{"outside of its memory", score(`(i32.load (i32.const -1))`), wasm.Trap, "out of bounds memory access"},
		{"division by zero", score(`(i32.div_u (i32.const 1) (i32.const 0))`), wasm.Trap, "integer divide by zero"},
		{"wrong indirect call", score(`(drop (call_indirect (result f32) (i32.const 0))) (i32.const 0)) (table 1 funcref) (func (nop)`), wasm.Trap, "invalid table access"},
		{"unknown code", score(`(i32.const 7)`), wasm.Protocol, "it returned 7: want 0 or 1"},
		{"its own error", score(`(i32.store8 offset=256 (local.get $block) (i32.const 104)) (i32.store offset=64 (local.get $block) (i32.const 256)) (i32.store offset=72 (local.get $block) (i32.const 1)) (i32.const 1)`), wasm.Refused, "boardd_score: it failed: h"},
		{"an error elsewhere", score(`(i32.store offset=64 (local.get $block) (i32.const -1)) (i32.store offset=72 (local.get $block) (i32.const -1)) (i32.const 1)`), wasm.Refused, "boardd_score: it failed"},
		{"trap halfway", score(`(i64.store (local.get $out) (i64.const 5)) unreachable`), wasm.Trap, "unreachable"},
		{"endless start", frame(`(func (export "_initialize") (loop (br 0))) (func (export "boardd_score") (param i32 i32) (result i32) (i32.const 0))`), wasm.OutFuel, "_initialize: it used up its fuel"},
		{"endless configuration", frame(`(func (export "boardd_configure") (param i32 i32) (result i32) (loop (br 0)) (i32.const 0)) (func (export "boardd_score") (param i32 i32) (result i32) (i32.const 0))`), wasm.OutFuel, "boardd_configure: it used up its fuel"},
		{"no room", strings.Replace(score(`(i32.const 0)`), "(i32.const 1024)", "(i32.const 0)", 1), wasm.Protocol, "boardd_alloc: its answer makes no sense: it returned 0"},
		{"room outside of its memory", strings.Replace(score(`(i32.const 0)`), "(i32.const 1024)", "(i32.const 0x000fff00)", 1), wasm.Protocol, "want a multiple of 16 with 524288 bytes of memory"},
		{"room at an odd place", strings.Replace(score(`(i32.const 0)`), "(i32.const 1024)", "(i32.const 1025)", 1), wasm.Protocol, "it returned 1025"},
		{"ends its process", `(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))` + score(`(call $exit (i32.const 0)) (i32.const 0)`)[len("(module"):], wasm.Trap, "the guest called proc_exit"},
		{"logs from nowhere", `(module (import "boardd1" "log" (func $log (param i32 i32 i32)))` + score(`(call $log (i32.const 0) (i32.const -1) (i32.const 5)) (i32.const 0)`)[len("(module"):], wasm.Trap, "lies outside of the memory"},
		{"data outside of its memory", frame(`(data (i32.const 0x7fffffff) "x") (func (export "boardd_score") (param i32 i32) (result i32) (i32.const 0))`), "", "can't be instantiated"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := assemble(t, test.text, `"ordering"`)
			for place, e := range map[string]*wasm.Engine{"here": here, "apart": apart} {
				err := attempt(t, e, b)
				var fault *wasm.Fault
				if test.kind != "" && (!errors.As(err, &fault) || fault.Kind != test.kind) || err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: got %v\nwant %s: %s", place, err, test.kind, test.want)
				}
			}
		})
	}
}

// attempt loads a module, and scores ten jobs.
func attempt(t *testing.T, e *wasm.Engine, b []byte) error {
	t.Helper()
	m, err := e.Load(t.Context(), b)
	if err != nil {
		return err
	}
	defer m.Close()
	p, err := m.Bind(t.Context(), nil)
	if err != nil {
		return err
	}
	defer p.Close()
	return p.Score(t.Context(), jobs(10, 1), make([]int64, 10))
}

// doubling are functions of which each calls the one before it twice.
func doubling(n int) string {
	var s strings.Builder
	s.WriteString("(func $f0 (nop))\n")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&s, "(func $f%d (call $f%d) (call $f%d))\n", i, i-1, i-1)
	}
	return s.String()
}

// A module that trapped is used again, from its beginning.
func TestAfterFault(t *testing.T) {
	t.Parallel()
	p := bind(t, newEngine(t, wasm.Config{Instances: 1}), assemble(t, score(`
		(if (i32.eq (i32.load offset=20 (local.get $block)) (i32.const 2)) (then unreachable))
		(i32.const 0)`), `"ordering"`), nil)
	for range 3 {
		if err := p.Score(t.Context(), jobs(1, 1), make([]int64, 1)); err != nil {
			t.Fatal(err)
		}
		if err := p.Score(t.Context(), jobs(2, 1), make([]int64, 2)); err == nil {
			t.Fatal("no fault")
		}
	}
}

// Whatever a module keeps, in memory, in a global, behind the block, by growing:
// the next call does not see it.
func TestForgets(t *testing.T) {
	t.Parallel()
	remember := map[string]string{
		"memory":      `(i64.store (local.get $out) (i64.load (i32.const 16))) (i64.store (i32.const 16) (i64.const 77))`,
		"global":      `(i64.store (local.get $out) (global.get $g)) (global.set $g (i64.const 77))`,
		"high memory": `(i64.store (local.get $out) (i64.load (i32.const 1000000))) (i64.store (i32.const 1000000) (i64.const 77))`,
		"behind the block": `(i64.store (local.get $out) (i64.load offset=0 (i32.add (local.get $block) (i32.load offset=12 (local.get $block)))))
			(i64.store (i32.add (local.get $block) (i32.load offset=12 (local.get $block))) (i64.const 77))
			(i64.store offset=40000 (local.get $block) (i64.const 77))`,
		"far behind the block": `(i64.store (local.get $out) (i64.load offset=500000 (local.get $block))) (i64.store offset=500000 (local.get $block) (i64.const 77))`,
		"in the block":         `(i64.store (local.get $out) (i64.load offset=8000 (local.get $block))) (i64.store offset=8000 (local.get $block) (i64.const 77))`,
		"size of its memory":   `(i64.store (local.get $out) (i64.extend_i32_u (i32.sub (memory.size) (i32.const 16)))) (drop (memory.grow (i32.const 1)))`,
	}
	for _, engine := range []*wasm.Engine{newEngine(t, wasm.Config{Instances: 1}), newEngine(t, wasm.Config{Instances: 1, Child: child})} {
		for name, body := range remember {
			t.Run(name, func(t *testing.T) {
				text := score(body + ` (i32.const 0)) (global $g (mut i64) (i64.const 0)) (func (nop)`)
				p := bind(t, engine, assemble(t, text, `"ordering"`), nil)
				for _, n := range []int{1, 200, 1, 3, 200, 2} { // a large block, then a small one
					scores := make([]int64, n)
					if err := p.Score(t.Context(), jobs(n, 1), scores); err != nil {
						t.Fatal(err)
					}
					if scores[0] != 0 && (name != "in the block" || n < 200) {
						t.Fatalf("%d jobs: it remembers %d", n, scores[0])
					}
				}
			})
		}
	}
}

// A module can't tell the time, nor draw lots.
func TestNoClock(t *testing.T) {
	t.Parallel()
	text := `(module (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
		(import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))` + score(`
		(drop (call $clock (i32.const 0) (i64.const 1) (i32.const 16)))
		(drop (call $random (i32.const 24) (i32.const 8)))
		(i64.store (local.get $out) (i64.xor (i64.load offset=40 (local.get $block)) (i64.xor (i64.load (i32.const 16)) (i64.load (i32.const 24)))))
		(i32.const 0)`)[len("(module"):]
	b := assemble(t, text, `"ordering"`)
	var all []int64
	for range 2 {
		p := bind(t, newEngine(t, wasm.Config{Instances: 1}), b, nil)
		for range 2 {
			scores := make([]int64, 1)
			if err := p.Score(t.Context(), jobs(1, 1), scores); err != nil {
				t.Fatal(err)
			}
			all = append(all, scores[0])
		}
	}
	for _, s := range all {
		if s != all[0] {
			t.Fatalf("it told the time, or drew lots: %x", all)
		}
	}
}

// Random bytes, which cost the host more than the guest, come in small amounts.
func TestRandomFlood(t *testing.T) {
	t.Parallel()
	text := `(module (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))` + score(`
		(loop (if (i32.eqz (call $random (i32.const 0) (i32.const 512)))
		  (then (i64.store (local.get $out) (i64.add (i64.load (local.get $out)) (i64.const 1))) (br 1))))
		(i32.const 0)`)[len("(module"):]
	p := bind(t, newEngine(t, wasm.Config{Instances: 1}), assemble(t, text, `"ordering"`), nil)
	for range 2 {
		scores := make([]int64, 1)
		if err := p.Score(t.Context(), jobs(1, 1), scores); err != nil || scores[0] != 8 {
			t.Errorf("512 bytes %d times, %v: want 8 times", scores[0], err)
		}
	}
}

// Whoever can write to the folder of compiled code could run anything.
func TestFolderOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := wasm.New(t.Context(), wasm.Config{CacheDir: dir}); !errors.Is(err, job.Invalid) {
		t.Errorf("got %v", err)
	}
	if _, err := wasm.New(t.Context(), wasm.Config{Child: child}); !errors.Is(err, job.Invalid) {
		t.Errorf("processes without a folder: %v", err)
	}
}

// A flood of lines is cut.
func TestLogFlood(t *testing.T) {
	t.Parallel()
	text := `(module (import "boardd1" "log" (func $log (param i32 i32 i32)))` + score(`
		(loop (call $log (i32.const 1) (i32.const 0) (i32.const 4096))
		  (i32.store (i32.const 8) (i32.add (i32.load (i32.const 8)) (i32.const 1))) (br_if 0 (i32.lt_u (i32.load (i32.const 8)) (i32.const 1500))))
		(i32.const 0)`)[len("(module"):]
	var lines atomic.Int64
	logger := slog.New(slog.NewTextHandler(writer(func(b []byte) { lines.Add(int64(bytes.Count(b, []byte("a policy logged")))) }), &slog.HandlerOptions{Level: slog.LevelDebug}))
	p := bind(t, newEngine(t, wasm.Config{Instances: 1, Logger: logger}), assemble(t, text, `"ordering"`), nil)
	if err := p.Score(t.Context(), jobs(1, 1), make([]int64, 1)); err != nil {
		t.Fatal(err)
	}
	if n := lines.Load(); n != 4 {
		t.Errorf("%d lines of 1,024 bytes: want 4", n)
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// Bad verdicts.
func TestNonsense(t *testing.T) {
	t.Parallel()
	e := newEngine(t, wasm.Config{Instances: 1})
	eligible := func(body string) []byte {
		return assemble(t, strings.Replace(score(body), "boardd_score", "boardd_eligible", 1), `"eligibility"`)
	}
	for _, test := range []struct{ name, body, want string }{
		{"decision", `(i32.store8 offset=16 (local.get $out) (i32.const 3)) (i32.const 0)`, "job 1 of the batch: a decision of 3"},
		{"reason", `(i32.store offset=4 (local.get $out) (i32.const 1)) (i32.const 0)`, "job 0 of the batch: reason 1: the manifest has 1"},
	} {
		p := bind(t, e, eligible(test.body), nil)
		err := p.Eligible(t.Context(), jobs(2, 1), make([]policy.Verdict, 2))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
	silent := bind(t, e, eligible(`(i32.const 0)`), nil)
	verdicts := []policy.Verdict{{Decision: policy.Allow}, {Decision: policy.Allow}}
	if err := silent.Eligible(t.Context(), jobs(2, 1), verdicts); err != nil || verdicts[0].Decision != policy.Deny || verdicts[1].Decision != policy.Deny {
		t.Errorf("a guest that writes nothing: %v, %v; want two denials", verdicts, err)
	}
}

// Truncated and damaged modules are refused or run; nothing else happens.
func TestDamaged(t *testing.T) {
	t.Parallel()
	e := newEngine(t, wasm.Config{Instances: 1})
	good := template(t, "c")
	for i := 0; i < len(good); i += 7 {
		_ = attempt(t, e, good[:i])
		damaged := bytes.Clone(good)
		damaged[i] ^= 1 << (i % 8)
		_ = attempt(t, e, damaged)
	}
	if err := attempt(t, e, good); err != nil {
		t.Error(err)
	}
}
