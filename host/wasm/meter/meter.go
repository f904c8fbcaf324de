// Package meter rewrites a module so that it counts what it does: each basic
// block takes its cost from a global, and each call takes the room of its frame
// from another. A module that has used up what it was given traps. The count is
// part of the module's code, so the same input costs the same everywhere.
//
// The fuel of a running function is kept in a local, which compilers keep in a
// register; it is written to its global before calls and read back after them.
// A function's code becomes
//
//	take the frame's room; trap if there is none
//	load the fuel
//	block $trap
//	  block $exit (its results)
//	    its code; "return" is a branch to $exit
//	  end
//	  give the room back; store the fuel; return
//	end
//	store the fuel; unreachable
//
// Inside, $exit has the number that the function itself had, so no label
// changes. Functions that call nothing take no room: their frames can't add up.
package meter

import (
	"encoding/binary"
	"fmt"

	"github.com/boardd/boardd/host/wasm/module"
)

// What a rewritten module exports besides its own.
const (
	FuelExport   = module.Reserved + "fuel"    // i64: what is left; negative: used up
	StackExport  = module.Reserved + "stack"   // i32: slots in use; above MaxStack: used up
	GlobalExport = module.Reserved + "global:" // and a number: each variable of the module
)

// MaxStack is how many slots the frames of all running functions may take. A
// frame is FrameSlots, one for each parameter and local, and as many as its
// operands get high. So at most 1,024 functions run in each other.
const (
	MaxStack   = 64 << 10
	FrameSlots = 64
)

// Costs of what is done in bulk.
const (
	bulkShift  = 5     // a unit of fuel for each 32 bytes
	importCost = 200   // for a call to what the host offers, which is about a tenth of a microsecond
	pageCost   = 1_024 // for each new page of memory, however many are asked for up to pageMost
	pageMost   = 1_024
)

// Version changes with what Rewrite makes of a module.
const Version = 2

// Metered is a rewritten module.
type Metered struct {
	Bytes   []byte
	Globals int // variables, exported as GlobalExport 0 to Globals-1
}

// Rewrite makes a module count. Its memory gets the maximum that was read, its
// table can't grow, and of its custom sections only the names stay.
func Rewrite(m *module.Module) Metered {
	w := &writer{
		Module: m,
		fuel:   uint32(len(m.Globals)), stack: uint32(len(m.Globals)) + 1,
		fill: uint32(m.Functions()), copy: uint32(m.Functions()) + 1, grow: uint32(m.Functions()) + 2,
		types: append([]module.FuncType(nil), m.Types...),
	}
	code := w.code() // before the types, to which it adds
	out := []byte("\x00asm\x01\x00\x00\x00")
	out = section(out, 1, w.typeSection())
	if len(m.Imports) > 0 {
		out = section(out, 2, w.importSection())
	}
	out = section(out, 3, w.functionSection())
	if m.Table >= 0 {
		table := []byte{1, byte(module.FuncRef), 1}
		table = uleb(uleb(table, uint64(m.Table)), uint64(m.Table))
		out = section(out, 4, table)
	}
	memory := []byte{1, 1}
	memory = uleb(uleb(memory, uint64(m.Memory.Min)), uint64(m.Memory.Max))
	out = section(out, 5, memory)
	out = section(out, 6, w.globalSection())
	exports, variables := w.exportSection()
	out = section(out, 7, exports)
	if m.Elements != nil {
		out = section(out, 9, m.Elements)
	}
	out = section(out, 10, code)
	if m.Data != nil {
		out = section(out, 11, m.Data)
	}
	if m.Names != nil {
		out = section(out, 0, append([]byte("\x04name"), m.Names...))
	}
	return Metered{Bytes: out, Globals: variables}
}

type writer struct {
	*module.Module
	fuel, stack      uint32 // globals
	fill, copy, grow uint32 // functions
	types            []module.FuncType
}

func section(out []byte, id byte, content []byte) []byte {
	out = uleb(append(out, id), uint64(len(content)))
	return append(out, content...)
}

func uleb(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func sleb(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func text(b []byte, s string) []byte { return append(uleb(b, uint64(len(s))), s...) }

// typeOf returns the index of a type, a new one if there is none like it.
func (w *writer) typeOf(t module.FuncType) uint32 {
	for i, u := range w.types {
		if u.Equal(t) {
			return uint32(i)
		}
	}
	w.types = append(w.types, t)
	return uint32(len(w.types) - 1)
}

func (w *writer) typeSection() []byte {
	out := uleb(nil, uint64(len(w.types)))
	for _, t := range w.types {
		out = append(out, 0x60)
		for _, list := range [][]module.Type{t.Params, t.Results} {
			out = uleb(out, uint64(len(list)))
			for _, v := range list {
				out = append(out, byte(v))
			}
		}
	}
	return out
}

func (w *writer) importSection() []byte {
	out := uleb(nil, uint64(len(w.Imports)))
	for _, i := range w.Imports {
		out = text(text(out, i.Module), i.Name)
		out = uleb(append(out, module.ExportFunction), uint64(i.Type))
	}
	return out
}

var (
	bulkType = module.FuncType{Params: []module.Type{module.I32, module.I32, module.I32}}
	growType = module.FuncType{Params: []module.Type{module.I32}, Results: []module.Type{module.I32}}
)

func (w *writer) functionSection() []byte {
	out := uleb(nil, uint64(len(w.Funcs)+3))
	for _, f := range w.Funcs {
		out = uleb(out, uint64(f.Type))
	}
	bulk := uint64(w.typeOf(bulkType))
	return uleb(uleb(uleb(out, bulk), bulk), uint64(w.typeOf(growType)))
}

func (w *writer) globalSection() []byte {
	out := uleb(nil, uint64(len(w.Globals)+2))
	for _, g := range w.Globals {
		out = append(out, byte(g.Type), 0)
		if g.Mutable {
			out[len(out)-1] = 1
		}
		out = append(out, g.Init...)
	}
	out = append(out, byte(module.I64), 1, byte(module.OpI64Const), 0, byte(module.OpEnd))
	return append(out, byte(module.I32), 1, byte(module.OpI32Const), 0, byte(module.OpEnd))
}

func (w *writer) exportSection() (out []byte, variables int) {
	var body []byte
	add := func(name string, kind byte, index uint32) {
		body = uleb(append(text(body, name), kind), uint64(index))
	}
	for _, e := range w.Exports {
		add(e.Name, e.Kind, e.Index)
	}
	for i, g := range w.Globals {
		if g.Mutable {
			add(fmt.Sprint(GlobalExport, variables), module.ExportGlobal, uint32(i))
			variables++
		}
	}
	add(FuelExport, module.ExportGlobal, w.fuel)
	add(StackExport, module.ExportGlobal, w.stack)
	return append(uleb(nil, uint64(len(w.Exports)+variables+2)), body...), variables
}
