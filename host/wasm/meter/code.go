package meter

import "github.com/boardd/boardd/host/wasm/module"

func (w *writer) code() []byte {
	// The helpers' types first: section order does not matter to indices.
	w.typeOf(bulkType)
	w.typeOf(growType)
	out := uleb(nil, uint64(len(w.Funcs)+3))
	for i := range w.Funcs {
		f := function{writer: w, Body: &w.Funcs[i]}
		body := f.rewrite()
		out = append(uleb(out, uint64(len(body))), body...)
	}
	for _, body := range [][]byte{w.bulk(module.OpMemoryFill), w.bulk(module.OpMemoryCopy), w.growth()} {
		out = append(uleb(out, uint64(len(body))), body...)
	}
	return out
}

// function is one that is being rewritten. What belongs to one basic block is
// gathered in block, since its cost, which is known at its end, stands before it.
type function struct {
	*writer
	*module.Body
	out, block []byte
	cost       int64
	check      bool   // the block is where a loop or the function begins
	nest       int    // how many blocks are open where the block begins
	local      uint32 // holds the fuel
	open       []label
	room       uint32 // of the frame, in slots; 0: takes none
}

// label is an open block of the original code.
type label struct {
	loop bool
	bare bool // who branches there takes no values along
}

// small is the cost up to which a function that calls nothing and does not loop
// is not asked whether there is fuel left: its caller is.
const small = 128

func (f *function) rewrite() []byte {
	t := f.Types[f.Type]
	f.local = uint32(len(t.Params) + f.LocalN)
	if f.Calls {
		f.room = uint32(FrameSlots + len(t.Params) + f.LocalN + f.Operands)
	}
	f.declare()
	f.enter(t)
	for at := 0; at < len(f.Code); {
		i := module.Next(f.Code, at)
		if i.End == len(f.Code) {
			break // the function's own end
		}
		f.instruction(i)
		at = i.End
	}
	f.flush()
	f.leave()
	return f.out
}

// declare adds a local to those that there are.
func (f *function) declare() {
	n, size := declarations(f.Locals)
	f.out = append(uleb(f.out, n+1), f.Locals[size:]...)
	f.out = append(f.out, 1, byte(module.I64))
}

// declarations returns how many declarations follow, and where they begin.
func declarations(locals []byte) (n uint64, size int) {
	for shift := uint(0); ; shift += 7 {
		c := locals[size]
		size++
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return n, size
		}
	}
}

func op(b []byte, op module.Op, index uint32) []byte { return uleb(append(b, byte(op)), uint64(index)) }

const (
	opI32Add = 0x6a
	opI32Sub = 0x6b
	opI32GtU = 0x4b
	opI64LtS = 0x53
	opI64Sub = 0x7d
)

// enter writes everything before the function's own code.
func (f *function) enter(t module.FuncType) {
	b := op(f.out, module.OpGlobalGet, f.fuel)
	b = op(b, module.OpLocalSet, f.local)
	b = append(b, byte(module.OpBlock), 0x40)
	if f.room > 0 {
		b = f.take(b, opI32Add)
		b = op(b, module.OpGlobalGet, f.stack)
		b = sleb(append(b, byte(module.OpI32Const)), MaxStack)
		b = op(append(b, opI32GtU), module.OpBrIf, 0)
	}
	b = append(b, byte(module.OpBlock))
	switch len(t.Results) {
	case 0:
		b = append(b, 0x40)
	case 1:
		b = append(b, byte(t.Results[0]))
	default:
		b = sleb(b, int64(f.typeOf(module.FuncType{Results: t.Results})))
	}
	f.out = b
	f.check = f.Calls || f.Loops || len(f.Code) > small
	f.cost = 2 // for the call itself
}

// take changes what the frames take by this one's room.
func (f *function) take(b []byte, how byte) []byte {
	b = op(b, module.OpGlobalGet, f.stack)
	b = sleb(append(b, byte(module.OpI32Const)), int64(f.room))
	return op(append(b, how), module.OpGlobalSet, f.stack)
}

func (f *function) leave() {
	b := append(f.out, byte(module.OpEnd)) //nolint:gocritic // out is written here
	if f.room > 0 {
		b = f.take(b, opI32Sub)
	}
	b = f.store(b)
	b = append(b, byte(module.OpReturn), byte(module.OpEnd))
	b = f.store(b)
	f.out = append(b, byte(module.OpUnreachable), byte(module.OpEnd))
}

// branch writes a br_if as an if around a br, which does the same if nothing is
// taken along. wazero makes one jump of a comparison and an if; that of a br_if
// to where others arrive as well it computes, tests, and jumps to another jump.
func branch(b []byte, label uint32) []byte {
	b = append(b, byte(module.OpIf), 0x40)
	return append(op(b, module.OpBr, label+1), byte(module.OpEnd))
}

// enterBlock notes a block that begins with this code.
func (f *function) enterBlock(code []byte) {
	loop, kind := code[0] == byte(module.OpLoop), code[1]
	// What is no number of a type, which stands for parameters, is one byte of these.
	f.open = append(f.open, label{loop: loop, bare: kind == 0x40 || loop && kind&0xc0 == 0x40})
}

// bare reports whether who branches to a label takes no values along.
func (f *function) bare(index uint32) bool {
	if at := len(f.open) - 1 - int(index); at >= 0 {
		return f.open[at].bare
	}
	return len(f.Types[f.Type].Results) == 0
}

func (f *function) store(b []byte) []byte {
	return op(op(b, module.OpLocalGet, f.local), module.OpGlobalSet, f.fuel)
}

func (f *function) load(b []byte) []byte {
	return op(op(b, module.OpGlobalGet, f.fuel), module.OpLocalSet, f.local)
}

// flush ends a basic block: its charge, then its code.
func (f *function) flush() {
	if f.check {
		f.cost = max(f.cost, 1)
	}
	if f.cost > 0 {
		b := op(f.out, module.OpLocalGet, f.local)
		b = append(sleb(append(b, byte(module.OpI64Const)), f.cost), opI64Sub)
		if f.check {
			b = op(b, module.OpLocalTee, f.local)
			b = append(b, byte(module.OpI64Const), 0, opI64LtS)
			b = branch(b, uint32(f.nest+1)) // $trap
		} else {
			b = op(b, module.OpLocalSet, f.local)
		}
		f.out = b
	}
	f.out = append(f.out, f.block...)
	f.block, f.cost, f.check, f.nest = f.block[:0], 0, false, len(f.open)
}

// end closes a block. Those who branch out of it arrive behind it, so a basic
// block begins there; out of a loop nobody does.
func (f *function) end(code []byte) {
	last := len(f.open) - 1
	loop := f.open[last].loop
	f.open = f.open[:last]
	if loop {
		f.block = append(f.block, code...)
		return
	}
	f.flush()
	f.out = append(f.out, code...)
}

func (f *function) instruction(i module.Instr) {
	code := f.Code[i.At:i.End]
	f.cost += module.Cost(i.Op)
	switch i.Op {
	case module.OpBlock:
		f.block = append(f.block, code...)
		f.enterBlock(code)
	case module.OpLoop, module.OpIf:
		f.block = append(f.block, code...)
		f.flush()
		f.check = i.Op == module.OpLoop
		f.enterBlock(code)
		f.nest = len(f.open)
	case module.OpElse:
		f.flush()
		f.out = append(f.out, code...)
	case module.OpEnd:
		f.end(code)
	case module.OpBrIf:
		if f.bare(i.Index) {
			f.block = branch(f.block, i.Index)
		} else {
			f.block = append(f.block, code...)
		}
		f.flush()
	case module.OpBr, module.OpBrTable, module.OpUnreachable:
		f.block = append(f.block, code...)
		f.flush()
	case module.OpReturn:
		f.block = op(f.block, module.OpBr, uint32(len(f.open))) // to $exit
		f.flush()
	case module.OpCall, module.OpCallIndirect:
		if i.Op == module.OpCall && int(i.Index) < len(f.Imports) {
			f.cost += importCost
		}
		f.block = f.load(append(f.store(f.block), code...))
	case module.OpMemoryFill:
		f.block = f.load(op(f.store(f.block), module.OpCall, f.fill))
	case module.OpMemoryCopy:
		f.block = f.load(op(f.store(f.block), module.OpCall, f.writer.copy))
	case module.OpMemoryGrow:
		f.block = f.load(op(f.store(f.block), module.OpCall, f.grow))
	default:
		f.block = append(f.block, code...)
	}
}

// charge writes the end of a helper's charge: what is left, without the amount
// on the stack, is in the global, and enough.
func (w *writer) charge(b []byte) []byte {
	b = op(append(b, opI64Sub), module.OpGlobalSet, w.fuel)
	b = op(b, module.OpGlobalGet, w.fuel)
	b = append(b, byte(module.OpI64Const), 0, opI64LtS, byte(module.OpIf), 0x40, byte(module.OpUnreachable), byte(module.OpEnd))
	return b
}

const (
	opI32LtU     = 0x49
	opI64ShrU    = 0x88
	opI64Mul     = 0x7e
	opI64ExtendU = 0xad
)

// bulk is the code of a function that fills or copies memory.
func (w *writer) bulk(which module.Op) []byte {
	b := op([]byte{0}, module.OpGlobalGet, w.fuel)
	b = append(op(b, module.OpLocalGet, 2), opI64ExtendU)
	b = append(sleb(append(b, byte(module.OpI64Const)), bulkShift), opI64ShrU)
	b = w.charge(b)
	for i := range uint32(3) {
		b = op(b, module.OpLocalGet, i)
	}
	b = append(b, 0xfc, byte(which&0xff), 0)
	if which == module.OpMemoryCopy {
		b = append(b, 0)
	}
	return append(b, byte(module.OpEnd))
}

// growth is the code of a function that grows the memory.
func (w *writer) growth() []byte {
	most := func(b []byte) []byte { return sleb(append(b, byte(module.OpI32Const)), pageMost) }
	b := op([]byte{0}, module.OpGlobalGet, w.fuel)
	b = most(op(b, module.OpLocalGet, 0))
	b = append(most(op(b, module.OpLocalGet, 0)), opI32LtU, byte(module.OpSelect), opI64ExtendU)
	b = append(sleb(append(b, byte(module.OpI64Const)), pageCost), opI64Mul)
	b = w.charge(b)
	b = op(b, module.OpLocalGet, 0)
	return append(b, byte(module.OpMemoryGrow), 0, byte(module.OpEnd))
}
