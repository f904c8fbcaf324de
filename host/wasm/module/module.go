// Package module reads WebAssembly modules that strangers made. It accepts what
// compilers make for policies and refuses everything else: whatever would cost
// too much to compile or run, whatever state an instance could hide from being
// reset, and imports that there are not. It does not check types of operands;
// the compiler does that, to what is accepted here.
package module

import (
	"bytes"
	"slices"
)

// Type is the type of a value.
type Type byte

// The types.
const (
	I32     Type = 0x7f
	I64     Type = 0x7e
	F32     Type = 0x7d
	F64     Type = 0x7c
	FuncRef Type = 0x70
)

// FuncType is the type of a function.
type FuncType struct{ Params, Results []Type }

// Equal reports whether two types are the same.
func (t FuncType) Equal(u FuncType) bool {
	return slices.Equal(t.Params, u.Params) && slices.Equal(t.Results, u.Results)
}

// Import is a function that a module asks for.
type Import struct {
	Module, Name string
	Type         uint32
}

// Global is a global variable.
type Global struct {
	Type    Type
	Mutable bool
	Init    []byte // its expression, with its end
}

// Export is a name that a module gives to something of its own.
type Export struct {
	Name  string
	Kind  byte
	Index uint32
}

// The kinds of exports.
const (
	ExportFunction = 0
	ExportTable    = 1
	ExportMemory   = 2
	ExportGlobal   = 3
)

// Body is the code of a function.
type Body struct {
	Type     uint32
	Locals   []byte // their declarations, as they stand in the module
	LocalN   int    // how many locals they declare, parameters not included
	Operands int    // how high the operand stack gets
	Calls    bool   // it calls functions of the module
	Loops    bool
	At       int // offset of the code in the module
	Code     []byte
}

// Module is what was read. It refers to the bytes that it was read from.
type Module struct {
	Types    []FuncType
	Imports  []Import
	Funcs    []Body
	Table    int // elements; -1: there is none
	Memory   Pages
	Globals  []Global
	Exports  []Export
	Elements []byte // the section's content; nil if there is none
	Data     []byte
	DataN    int
	Names    []byte // the content of the name section, without its name
	Manifest []byte

	names map[uint32]string
}

// Pages are the bounds of the memory, in units of 64 KiB.
type Pages struct{ Min, Max int }

// TypeOf returns the type of a function by its index, imported ones included.
func (m *Module) TypeOf(index uint32) FuncType { return m.Types[m.typeIndex(index)] }

func (m *Module) typeIndex(index uint32) uint32 {
	if int(index) < len(m.Imports) {
		return m.Imports[index].Type
	}
	return m.Funcs[int(index)-len(m.Imports)].Type
}

// Functions returns how many functions there are, imported ones included.
func (m *Module) Functions() int { return len(m.Imports) + len(m.Funcs) }

// Export returns the function that is exported under a name.
func (m *Module) Export(name string) (index uint32, ok bool) {
	for _, e := range m.Exports {
		if e.Name == name && e.Kind == ExportFunction {
			return e.Index, true
		}
	}
	return 0, false
}

// head is how a core module begins.
var head = []byte("\x00asm\x01\x00\x00\x00")

// Read reads a module and checks it against the limits. Its errors are
// *Refusal.
func Read(b []byte, limits Limits) (m *Module, err error) {
	limits = limits.WithDefaults()
	m = &Module{Table: -1, Memory: Pages{Min: -1}}
	r := &reader{Module: m, limits: limits, cursor: cursor{bytes: b, end: len(b), function: -1}}
	defer func() {
		if p := recover(); p != nil {
			refusal, ok := p.(*Refusal)
			if !ok {
				panic(p)
			}
			if refusal.Function >= 0 {
				refusal.Name = m.Name(uint32(refusal.Function))
			}
			m, err = nil, refusal
		}
	}()
	r.module()
	return m, nil
}

// reader is a module that is being read.
type reader struct {
	*Module
	cursor
	limits    Limits
	types     []uint32 // of the functions, before their bodies are read
	counted   int      // what the data count section said, -1 without
	blocks    int      // blocks times locals, so far
	lastID    int
	customs   int
	manifests int
}

func (r *reader) module() {
	if len(r.bytes) > r.limits.Bytes {
		r.refuse(0, "strip debugging sections and build for size", "%d bytes: want at most %d", len(r.bytes), r.limits.Bytes)
	}
	if !bytes.HasPrefix(r.bytes, head[:4]) {
		r.refuse(0, "", "this is no WebAssembly module: it does not begin with \\0asm")
	}
	if !bytes.HasPrefix(r.bytes, head) {
		if len(r.bytes) >= 8 && r.bytes[4] == 0x0d && r.bytes[6] == 1 {
			r.refuse(4, "build a core module", "this is a component")
		}
		r.refuse(4, "", "the module is not of version 1")
	}
	r.at, r.counted = len(head), -1
	for r.at < len(r.bytes) {
		r.section()
	}
	r.whole()
}

// rank is a section's place: the data count comes before the code.
var rank = map[byte]int{1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 9: 9, 12: 10, 10: 11, 11: 12}

func (r *reader) section() {
	start := r.at
	id := r.byte()
	size := int(r.uint())
	if size > len(r.bytes)-r.at {
		r.refuse(start, "", "section %d has %d bytes and the module only %d more", id, size, len(r.bytes)-r.at)
	}
	r.end = r.at + size
	if id != 0 {
		place, ok := rank[id]
		switch {
		case id == 8:
			r.refuse(start, "move its work to _initialize (AssemblyScript: --exportStart _initialize)", "a start section")
		case !ok:
			r.refuse(start, "build without exceptions, threads and garbage collection", "a section of unknown kind %d", id)
		case place <= r.lastID:
			r.refuse(start, "", "section %d is out of order or there twice", id)
		}
		r.lastID = place
	}
	r.content(id)
	if r.at != r.end {
		r.refuse(r.at, "", "section %d has %d bytes too many", id, r.end-r.at)
	}
	r.end = len(r.bytes)
}

func (r *reader) content(id byte) {
	switch id {
	case 0:
		r.custom()
	case 1:
		r.typeSection()
	case 2:
		r.importSection()
	case 3:
		r.functionSection()
	case 4:
		r.tableSection()
	case 5:
		r.memorySection()
	case 6:
		r.globalSection()
	case 7:
		r.exportSection()
	case 9:
		r.elementSection()
	case 10:
		r.codeSection()
	case 11:
		r.dataSection()
	case 12:
		r.counted = int(r.uint())
	}
}

// whole checks what only the end of a module shows.
func (r *reader) whole() {
	if len(r.Funcs) != len(r.types) {
		r.refuse(len(r.bytes), "", "%d functions are declared and none has code", len(r.types))
	}
	if r.counted >= 0 && r.counted != r.DataN {
		r.refuse(len(r.bytes), "", "%d data segments are announced: there are %d", r.counted, r.DataN)
	}
	if r.Memory.Min < 0 {
		r.refuse(len(r.bytes), "", "the module has no memory")
	}
}
