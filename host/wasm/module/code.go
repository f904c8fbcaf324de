package module

// Instr is one instruction.
type Instr struct {
	Op      Op
	At, End int    // in the code
	Index   uint32 // label, function, local, global, or type of an indirect call
	Type    int64  // of a block: -0x40 none, negative a value type, or a type's index
}

// Empty is the type of a block that has neither parameters nor results.
const Empty = -0x40

// Next decodes the instruction at a place of code that Read accepted.
func Next(code []byte, at int) Instr {
	c := cursor{bytes: code, at: at, end: len(code), function: -1}
	i := Instr{At: at}
	i.Op = c.op()
	c.immediates(&i, func(uint32) {})
	i.End = c.at
	return i
}

func (c *cursor) op() Op {
	op := Op(c.byte())
	if op == 0xfc {
		at := c.at
		sub := c.uint()
		if sub > 0xff {
			c.refuse(at, "", "an unknown instruction 0xfc %d", sub)
		}
		op = 0xfc00 | Op(sub)
	}
	return op
}

// immediates reads what follows an opcode and shows each label of a br_table.
func (c *cursor) immediates(i *Instr, branch func(label uint32)) {
	switch find(i.Op).shape {
	case unknown:
		c.refuse(i.At, mendOp(i.Op), "the instruction %#x is not accepted", uint16(i.Op))
	case plain:
	case blockType:
		i.Type = c.sint(33)
	case label, function, local, global:
		i.Index = c.uint()
	case labels:
		n := c.count("labels of a br_table", MaxBranchTable, 1, "split the switch")
		for range n + 1 {
			i.Index = c.uint()
			branch(i.Index)
		}
	case indirect:
		i.Index = c.uint()
		c.index("table", 1)
	case memarg:
		at := c.at
		if c.uint() > 3 {
			c.refuse(at, "build for one memory", "an alignment above 8 bytes")
		}
		c.uint()
	case memoryZero:
		c.index("memory", 1)
	case memoryZeros:
		c.index("memory", 1)
		c.index("memory", 1)
	case const32:
		c.sint(32)
	case const64:
		c.sint(64)
	case constF32:
		c.skip(4)
	case constF64:
		c.skip(8)
	case selectType:
		at := c.at
		if c.uint() != 1 {
			c.refuse(at, "", "a select of several types")
		}
		switch Type(c.byte()) {
		case I32, I64, F32, F64:
		default:
			c.refuse(at, "build without reference types", "a select of references")
		}
	}
}

// frame is a block that is open.
type frame struct {
	op              Op
	base            int // height of the operands below its parameters
	params, results int
}

// body is a function that is being checked.
type body struct {
	*reader
	*Body
	frames   []frame
	height   int
	blocks   int
	branches int
	locals   int
}

func (r *reader) codeSection() {
	if n := r.count("functions' codes", MaxFunctions, 2, ""); n != len(r.types) {
		r.refuse(r.at, "", "%d functions are declared and %d have code", len(r.types), n)
	}
	section := r.end
	for i, t := range r.types {
		r.function = len(r.Imports) + i
		start := r.at
		size := int(r.uint())
		if size > MaxBody {
			r.refuse(start, "split the function, or build for size", "a function of %d bytes: want at most %d", size, MaxBody)
		}
		if size > section-r.at {
			r.refuse(start, "", "the function is longer than its section")
		}
		r.end = r.at + size
		r.Funcs = append(r.Funcs, Body{Type: t})
		b := body{reader: r, Body: &r.Funcs[i]}
		b.read()
		if r.at != r.end {
			r.refuse(r.at, "", "the function goes on after its end")
		}
		r.end = section
	}
	r.function = -1
}

func (b *body) read() {
	t := b.Types[b.Type]
	b.declarations(len(t.Params))
	b.At = b.at
	b.Code = b.bytes[b.at:b.end]
	b.frames = append(b.frames, frame{op: OpBlock, results: len(t.Results)})
	for len(b.frames) > 0 {
		b.instruction()
	}
	cost := b.blocks * b.locals
	if cost > MaxBlockLocals {
		b.refuse(b.At, "split the function", "%d blocks times %d locals: want at most %d in all", b.blocks, b.locals, MaxBlockLocals)
	}
	if b.reader.blocks += cost; b.reader.blocks > MaxModuleBlocks {
		b.refuse(b.At, "split the policy", "blocks times locals of all functions are more than %d", MaxModuleBlocks)
	}
}

// declarations reads the function's locals.
func (b *body) declarations(params int) {
	start := b.at
	b.locals = params
	for range b.count("declarations of locals", MaxLocals, 2, "split the function") {
		at := b.at
		n := int(b.uint())
		b.valueType()
		if b.locals += n; n > MaxLocals || b.locals > MaxLocals {
			b.refuse(at, "split the function", "%d locals: want at most %d", b.locals, MaxLocals)
		}
	}
	b.LocalN = b.locals - params
	b.Body.Locals = b.bytes[start:b.at]
}

func (b *body) instruction() {
	i := Instr{At: b.at}
	i.Op = b.op()
	b.immediates(&i, func(label uint32) { b.label(i.At, label) })
	o := find(i.Op)
	b.pop(int(o.pop))
	b.push(int(o.push))
	switch o.shape {
	case blockType:
		b.open(&i)
	case label:
		b.label(i.At, i.Index)
	case function:
		b.call(&i, b.functionType(i.At, i.Index))
	case indirect:
		if int(i.Index) >= len(b.Types) || b.Table < 0 {
			b.refuse(i.At, "", "an indirect call of type %d of %d, or without a table", i.Index, len(b.Types))
		}
		b.call(&i, b.Types[i.Index])
	case local:
		if int(i.Index) >= b.locals {
			b.refuse(i.At, "", "local %d of %d", i.Index, b.locals)
		}
	case global:
		if int(i.Index) >= len(b.Globals) {
			b.refuse(i.At, "", "global %d of %d", i.Index, len(b.Globals))
		}
	}
	switch i.Op {
	case OpElse:
		b.otherwise(i.At)
	case OpEnd:
		b.close()
	case OpBr, OpBrTable, OpReturn, OpUnreachable:
		b.height = b.frames[len(b.frames)-1].base // nothing follows, or what does has any operands
	}
}

func (b *body) functionType(at int, index uint32) FuncType {
	if int(index) >= len(b.Imports)+len(b.types) {
		b.refuse(at, "", "function %d of %d", index, len(b.Imports)+len(b.types))
	}
	if int(index) < len(b.Imports) {
		return b.Types[b.Imports[index].Type]
	}
	return b.Types[b.types[int(index)-len(b.Imports)]]
}

func (b *body) call(i *Instr, t FuncType) {
	b.Calls = b.Calls || i.Op == OpCallIndirect || int(i.Index) >= len(b.Imports)
	b.pop(len(t.Params))
	b.push(len(t.Results))
}

// pop takes operands away. Where the code is wrong there may be fewer; the
// compiler says so later.
func (b *body) pop(n int) { b.height = max(b.height-n, b.frames[len(b.frames)-1].base) }

func (b *body) push(n int) {
	if b.height += n; b.height > MaxOperands {
		b.refuse(b.at, "use locals", "more than %d operands", MaxOperands)
	}
	b.Operands = max(b.Operands, b.height)
}

func (b *body) label(at int, label uint32) {
	if int64(label) >= int64(len(b.frames)) {
		b.refuse(at, "", "label %d of %d", label, len(b.frames))
	}
	if b.branches++; b.branches > MaxBranches {
		b.refuse(at, "split the function", "more than %d labels in branches", MaxBranches)
	}
}

// open begins a block, a loop or an if.
func (b *body) open(i *Instr) {
	f := frame{op: i.Op}
	switch {
	case i.Type == Empty:
	case i.Type >= 0:
		if i.Type >= int64(len(b.Types)) {
			b.refuse(i.At, "", "type %d of %d", i.Type, len(b.Types))
		}
		f.params, f.results = len(b.Types[i.Type].Params), len(b.Types[i.Type].Results)
	default:
		if t := Type(i.Type & 0x7f); i.Type < -64 || t != I32 && t != I64 && t != F32 && t != F64 {
			b.refuse(i.At, "build without SIMD and reference types", "a block of the type %#x", byte(t))
		}
		f.results = 1
	}
	b.Loops = b.Loops || i.Op == OpLoop
	b.pop(f.params)
	f.base = b.height
	b.push(f.params)
	b.blocks++
	if b.frames = append(b.frames, f); len(b.frames) > MaxNesting {
		b.refuse(i.At, "split the function", "more than %d blocks in blocks", MaxNesting)
	}
}

func (b *body) otherwise(at int) {
	f := &b.frames[len(b.frames)-1]
	if f.op != OpIf {
		b.refuse(at, "", "an else without its if")
	}
	f.op = OpElse
	b.height = f.base
	b.push(f.params)
}

func (b *body) close() {
	f := b.frames[len(b.frames)-1]
	b.frames = b.frames[:len(b.frames)-1]
	b.height = f.base
	if len(b.frames) > 0 {
		b.push(f.results)
	}
	b.Operands = max(b.Operands, f.base+f.results)
}
