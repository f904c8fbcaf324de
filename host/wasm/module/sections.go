package module

import (
	"unicode/utf8"

	"github.com/boardd/boardd/sdk/policy/abi"
)

func (r *reader) custom() {
	start := r.at
	if r.customs++; r.customs > MaxCustomSections {
		r.refuse(start, "strip the module", "more than %d custom sections", MaxCustomSections)
	}
	name := r.text("a custom section's name")
	content := r.skip(r.end - r.at)
	switch name {
	case "name":
		r.Names = content
	case abi.Section:
		if r.manifests++; r.manifests > 1 {
			r.refuse(start, "keep one", "a second custom section %q", abi.Section)
		}
		r.Manifest = content
	}
}

func (r *reader) valueType() Type {
	at := r.at
	switch t := Type(r.byte()); t {
	case I32, I64, F32, F64:
		return t
	case 0x7b:
		r.refuse(at, "build without SIMD", "the type v128")
	case FuncRef, 0x6f:
		r.refuse(at, "build without reference types", "a reference as a value")
	default:
		r.refuse(at, "", "an unknown type %#x", byte(t))
	}
	return 0
}

func (r *reader) typeSection() {
	for range r.count("types", MaxTypes, 3, "split the policy") {
		if at := r.at; r.byte() != 0x60 {
			r.refuse(at, "build without garbage collection", "a type that is no function's")
		}
		var t FuncType
		for range r.count("parameters", MaxParams, 1, "pass a pointer") {
			t.Params = append(t.Params, r.valueType())
		}
		for range r.count("results", MaxResults, 1, "return a pointer") {
			t.Results = append(t.Results, r.valueType())
		}
		r.Types = append(r.Types, t)
	}
}

func (r *reader) importSection() {
	for range r.count("imports", MaxImports, 4, "import only "+abi.ModuleHost+"."+abi.ImportLog) {
		at := r.at
		i := Import{Module: r.text("an import's module"), Name: r.text("an import's name")}
		if kind := r.byte(); kind != ExportFunction {
			r.refuse(at, "define it in the module (a memory: build without --import-memory)", "the import %.64s.%.64s is no function", i.Module, i.Name)
		}
		i.Type = r.index("type", len(r.Types))
		want, ok := allowed[i.Module+"."+i.Name]
		if !ok {
			want, ok = r.limits.Imports[i.Module+"."+i.Name]
		}
		if !ok {
			r.refuse(at, mendImport(i), "the import %.64s.%.64s is not offered", i.Module, i.Name)
		}
		if got := r.Types[i.Type]; !got.Equal(want) {
			r.refuse(at, "", "the import %s.%s is of type %s: want %s", i.Module, i.Name, got, want)
		}
		r.Imports = append(r.Imports, i)
	}
}

func (r *reader) functionSection() {
	for range r.count("functions", MaxFunctions, 1, "leave out what is not used") {
		r.types = append(r.types, r.index("type", len(r.Types)))
	}
}

// bounds reads the limits of a table or memory; most is -1 without a maximum.
func (r *reader) bounds() (least, most int) {
	at := r.at
	flags := r.byte()
	least, most = int(r.uint()), -1
	switch flags {
	case 0:
	case 1:
		most = int(r.uint())
	default:
		r.refuse(at, "build for wasm32, without threads", "a table or memory with the flags %#x", flags)
	}
	if most >= 0 && most < least {
		r.refuse(at, "", "a minimum of %d above the maximum of %d", least, most)
	}
	return least, most
}

func (r *reader) tableSection() {
	for range r.count("tables", 1, 3, "one is enough") {
		at := r.at
		if t := Type(r.byte()); t != FuncRef {
			r.refuse(at, "build without reference types", "a table of type %#x", byte(t))
		}
		least, _ := r.bounds() // it can't grow, so a maximum means nothing
		if least > MaxTable {
			r.refuse(at, "use fewer indirect calls", "a table of %d elements: want at most %d", least, MaxTable)
		}
		r.Table = least
	}
}

func (r *reader) memorySection() {
	for range r.count("memories", 1, 2, "one is enough") {
		at := r.at
		least, most := r.bounds()
		if least > r.limits.MemoryPages {
			r.refuse(at, "use less, or a smaller stack", "a memory of %d pages: want at most %d (%d MiB)", least, r.limits.MemoryPages, r.limits.MemoryPages>>4)
		}
		if most < 0 || most > r.limits.MemoryPages {
			most = r.limits.MemoryPages
		}
		r.Memory = Pages{Min: least, Max: most}
	}
}

func (r *reader) globalSection() {
	for range r.count("globals", MaxGlobals, 4, "keep it in memory") {
		g := Global{Type: r.valueType()}
		switch at := r.at; r.byte() {
		case 0:
		case 1:
			g.Mutable = true
		default:
			r.refuse(at, "", "a global that is neither constant nor variable")
		}
		g.Init = r.constant(g.Type)
		r.Globals = append(r.Globals, g)
	}
}

// constant reads an expression of one constant.
func (r *reader) constant(want Type) []byte {
	start := r.at
	got := Type(0)
	switch r.byte() {
	case 0x41:
		r.sint(32)
		got = I32
	case 0x42:
		r.sint(64)
		got = I64
	case 0x43:
		r.skip(4)
		got = F32
	case 0x44:
		r.skip(8)
		got = F64
	}
	if got != want || r.byte() != 0x0b {
		r.refuse(start, "", "an initial value that is not one constant of its type")
	}
	return r.bytes[start:r.at]
}

// Reserved is how no export of a module may begin.
const Reserved = "boardd:"

func (r *reader) exportSection() {
	seen := map[string]bool{}
	for range r.count("exports", MaxExports, 3, "export only what abi.md names") {
		at := r.at
		e := Export{Name: r.text("an export's name"), Kind: r.byte()}
		switch e.Kind {
		case ExportFunction:
			e.Index = r.index("function", len(r.Imports)+len(r.types))
		case ExportTable:
			e.Index = r.index("table", min(1, r.Table+1))
		case ExportMemory:
			e.Index = r.index("memory", 1)
		case ExportGlobal:
			e.Index = r.index("global", len(r.Globals))
		default:
			r.refuse(at, "", "an export of unknown kind %d", e.Kind)
		}
		if seen[e.Name] || !utf8.ValidString(e.Name) || len(e.Name) >= len(Reserved) && e.Name[:len(Reserved)] == Reserved {
			r.refuse(at, "rename it", "the export %q is there twice, no text, or begins with %q", e.Name, Reserved)
		}
		seen[e.Name] = true
		r.Exports = append(r.Exports, e)
	}
}

func (r *reader) elementSection() {
	start := r.at
	total := 0
	for range r.count("element segments", MaxElementSegments, 2, "leave out what is not used") {
		at := r.at
		switch flags := r.uint(); flags {
		case 0:
		case 2:
			r.index("table", 1)
		default:
			r.refuse(at, "build without passive element segments and reference types", "an element segment of kind %d", flags)
		}
		if r.Table < 0 {
			r.refuse(at, "", "an element segment without a table")
		}
		r.constant(I32)
		if r.bytes[at] == 2 && r.byte() != 0 {
			r.refuse(at, "", "an element segment that is not of functions")
		}
		n := r.count("elements", MaxTable, 1, "use fewer indirect calls")
		if total += n; total > MaxTable {
			r.refuse(at, "use fewer indirect calls", "more than %d elements", MaxTable)
		}
		for range n {
			r.index("function", len(r.Imports)+len(r.types))
		}
	}
	r.Elements = r.bytes[start:r.at]
}

func (r *reader) dataSection() {
	start := r.at
	r.DataN = r.count("data segments", MaxDataSegments, 2, "use less initialized data")
	for range r.DataN {
		at := r.at
		switch flags := r.uint(); flags {
		case 0:
		case 2:
			r.index("memory", 1)
		default:
			r.refuse(at, "build without passive data segments (no threads, no bulk memory initialization)", "a data segment of kind %d", flags)
		}
		r.constant(I32)
		r.skip(r.count("bytes of data", MaxBytes, 1, ""))
	}
	r.Data = r.bytes[start:r.at]
}
