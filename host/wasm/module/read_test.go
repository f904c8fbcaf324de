package module_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/boardd/boardd/host/wasm/module"
)

// section appends a section by its parts.
func section(b []byte, id byte, parts ...[]byte) []byte {
	content := bytes.Join(parts, nil)
	return append(binary.AppendUvarint(append(b, id), uint64(len(content))), content...)
}

// with is a module with one function of a code, a memory, a table and a global.
func with(code ...byte) []byte {
	b := section([]byte("\x00asm\x01\x00\x00\x00"), 1, []byte{1, 0x60, 1, 0x7f, 1, 0x7f})
	b = section(b, 3, []byte{1, 0})
	b = section(b, 4, []byte{1, 0x70, 0, 1})
	b = section(b, 5, []byte{1, 0, 1})
	b = section(b, 6, []byte{1, 0x7e, 1, 0x42, 0, 0x0b})
	b = section(b, 7, []byte{1, 6}, []byte("memory"), []byte{2, 0})
	body := append([]byte{1, 2, 0x7e}, append(code, 0x0b)...)
	b = section(b, 10, []byte{1}, binary.AppendUvarint(nil, uint64(len(body))), body)
	return section(b, 11, []byte{1, 0, 0x41, 0, 0x0b, 1, 'x'})
}

// Whatever comes, it is refused with a reason, or it is within every limit and its
// code can be gone through instruction by instruction.
func FuzzRead(f *testing.F) {
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	f.Add([]byte("\x00asm\x0d\x00\x01\x00"))
	f.Add(with(0x20, 0))
	f.Add(with(0x02, 0x40, 0x03, 0x40, 0x20, 0, 0x0d, 1, 0x0c, 0, 0x0b, 0x0b, 0x41, 7))               // block, loop, br_if, br
	f.Add(with(0x20, 0, 0x0e, 2, 0, 0, 0, 0x41, 1))                                                   // br_table
	f.Add(with(0x20, 0, 0x04, 0x7f, 0x41, 1, 0x05, 0x41, 2, 0x0b))                                    // if else
	f.Add(with(0x20, 0, 0x10, 0))                                                                     // call
	f.Add(with(0x20, 0, 0x20, 0, 0x11, 0, 0))                                                         // call_indirect
	f.Add(with(0x41, 0, 0x41, 0, 0x41, 8, 0xfc, 0x0b, 0, 0x41, 1, 0x40, 0))                           // memory.fill, memory.grow
	f.Add(with(0x23, 0, 0x24, 0, 0x44, 0, 0, 0, 0, 0, 0, 0, 0, 0x1a, 0x20, 0, 0x28, 2, 0))            // globals, f64.const, a load
	f.Add(section(with(0x20, 0), 0, []byte{4}, []byte("name"), []byte{0, 2, 1, 'm'}))                 // names
	f.Add(section([]byte("\x00asm\x01\x00\x00\x00"), 10, binary.AppendUvarint(nil, 67_000_000), nil)) // a bomb
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := module.Read(b, module.Limits{})
		if err != nil {
			if refusal, ok := errors.AsType[*module.Refusal](err); !ok || refusal.Error() == "" {
				t.Fatalf("it is refused with %T %v", err, err)
			}
			return
		}
		if m.Memory.Min > m.Memory.Max || m.Memory.Max > module.DefaultMemoryPages || m.Table > module.MaxTable || m.Functions() > module.MaxFunctions+module.MaxImports {
			t.Fatalf("a memory of %d to %d pages, a table of %d, %d functions", m.Memory.Min, m.Memory.Max, m.Table, m.Functions())
		}
		for i := range m.Funcs {
			f := &m.Funcs[i]
			if f.LocalN > module.MaxLocals || f.Operands > module.MaxOperands || len(f.Code) > module.MaxBody {
				t.Fatalf("function %d has %d locals, %d operands and %d bytes", i, f.LocalN, f.Operands, len(f.Code))
			}
			for at := 0; at < len(f.Code); {
				next := module.Next(f.Code, at)
				if next.End <= at || next.End > len(f.Code) {
					t.Fatalf("function %d: the instruction at %d ends at %d of %d", i, at, next.End, len(f.Code))
				}
				at = next.End
			}
		}
	})
}
