package module

// Op is an opcode; those with the prefix 0xfc are 0xfc00 and more.
type Op uint16

// The opcodes that more than one place knows.
const (
	OpUnreachable  Op = 0x00
	OpNop          Op = 0x01
	OpBlock        Op = 0x02
	OpLoop         Op = 0x03
	OpIf           Op = 0x04
	OpElse         Op = 0x05
	OpEnd          Op = 0x0b
	OpBr           Op = 0x0c
	OpBrIf         Op = 0x0d
	OpBrTable      Op = 0x0e
	OpReturn       Op = 0x0f
	OpCall         Op = 0x10
	OpCallIndirect Op = 0x11
	OpDrop         Op = 0x1a
	OpSelect       Op = 0x1b
	OpSelectType   Op = 0x1c
	OpLocalGet     Op = 0x20
	OpLocalSet     Op = 0x21
	OpLocalTee     Op = 0x22
	OpGlobalGet    Op = 0x23
	OpGlobalSet    Op = 0x24
	OpMemorySize   Op = 0x3f
	OpMemoryGrow   Op = 0x40
	OpI32Const     Op = 0x41
	OpI64Const     Op = 0x42
	OpF32Const     Op = 0x43
	OpF64Const     Op = 0x44
	OpMemoryInit   Op = 0xfc08
	OpDataDrop     Op = 0xfc09
	OpMemoryCopy   Op = 0xfc0a
	OpMemoryFill   Op = 0xfc0b
)

// shape says what follows an opcode in the code.
type shape uint8

const (
	unknown shape = iota
	plain
	blockType // of block, loop, if
	label
	labels
	function
	indirect
	local
	global
	memarg
	memoryZero
	memoryZeros
	const32
	const64
	constF32
	constF64
	selectType
)

// operation is what has to be known of an opcode.
type operation struct {
	shape     shape
	pop, push int8
	cost      uint8
}

// operations are the opcodes that are accepted, the prefixed ones apart.
var operations = func() (t [256]operation) {
	set := func(from, to Op, o operation) {
		for op := from; op <= to; op++ {
			t[op] = o
		}
	}
	set(OpUnreachable, OpUnreachable, operation{plain, 0, 0, 1})
	set(OpNop, OpNop, operation{plain, 0, 0, 0})
	set(OpBlock, OpIf, operation{blockType, 0, 0, 0})
	set(OpIf, OpIf, operation{blockType, 1, 0, 1})
	set(OpElse, OpElse, operation{plain, 0, 0, 0})
	set(OpEnd, OpEnd, operation{plain, 0, 0, 0})
	set(OpBr, OpBr, operation{label, 0, 0, 1})
	set(OpBrIf, OpBrIf, operation{label, 1, 0, 1})
	set(OpBrTable, OpBrTable, operation{labels, 1, 0, 2})
	set(OpReturn, OpReturn, operation{plain, 0, 0, 1})
	set(OpCall, OpCall, operation{function, 0, 0, 4})
	set(OpCallIndirect, OpCallIndirect, operation{indirect, 1, 0, 8})
	set(OpDrop, OpDrop, operation{plain, 1, 0, 1})
	set(OpSelect, OpSelect, operation{plain, 3, 1, 1})
	set(OpSelectType, OpSelectType, operation{selectType, 3, 1, 1})
	set(OpLocalGet, OpLocalGet, operation{local, 0, 1, 1})
	set(OpLocalSet, OpLocalSet, operation{local, 1, 0, 1})
	set(OpLocalTee, OpLocalTee, operation{local, 1, 1, 1})
	set(OpGlobalGet, OpGlobalGet, operation{global, 0, 1, 1})
	set(OpGlobalSet, OpGlobalSet, operation{global, 1, 0, 1})
	set(0x28, 0x35, operation{memarg, 1, 1, 2}) // loads
	set(0x36, 0x3e, operation{memarg, 2, 0, 2}) // stores
	set(OpMemorySize, OpMemorySize, operation{memoryZero, 0, 1, 1})
	set(OpMemoryGrow, OpMemoryGrow, operation{memoryZero, 1, 1, 4})
	set(OpI32Const, OpI32Const, operation{const32, 0, 1, 1})
	set(OpI64Const, OpI64Const, operation{const64, 0, 1, 1})
	set(OpF32Const, OpF32Const, operation{constF32, 0, 1, 1})
	set(OpF64Const, OpF64Const, operation{constF64, 0, 1, 1})
	numeric(set)
	return t
}()

// numeric sets the arithmetic: mostly two operands and one result.
func numeric(set func(from, to Op, o operation)) {
	set(0x45, 0xc4, operation{plain, 2, 1, 1})
	for _, unary := range [][2]Op{
		{0x45, 0x45}, {0x50, 0x50}, // eqz
		{0x67, 0x69}, {0x79, 0x7b}, // clz, ctz, popcnt
		{0x8b, 0x91}, {0x99, 0x9f}, // abs to sqrt
		{0xa7, 0xc4}, // conversions
	} {
		set(unary[0], unary[1], operation{plain, 1, 1, 1})
	}
	for _, slow := range [][2]Op{{0x6d, 0x70}, {0x7f, 0x82}, {0x95, 0x95}, {0xa3, 0xa3}} { // divisions
		set(slow[0], slow[1], operation{plain, 2, 1, 8})
	}
	set(0x91, 0x91, operation{plain, 1, 1, 8}) // f32.sqrt
	set(0x9f, 0x9f, operation{plain, 1, 1, 8}) // f64.sqrt
}

// find returns what an opcode is; its shape is unknown if it is not accepted.
func find(op Op) operation {
	switch {
	case op < 0xc5:
		return operations[op]
	case op >= 0xfc00 && op <= 0xfc07:
		return operation{plain, 1, 1, 2} // truncations that don't trap
	case op == OpMemoryCopy:
		return operation{memoryZeros, 3, 0, 4}
	case op == OpMemoryFill:
		return operation{memoryZero, 3, 0, 4}
	}
	return operation{}
}

// Cost returns what an instruction costs, in units of fuel.
func Cost(op Op) int64 { return int64(find(op).cost) }

// mendOp says how an opcode that is not accepted is avoided.
func mendOp(op Op) string {
	switch {
	case op >= 0x06 && op <= 0x0a || op == 0x18 || op == 0x19 || op == 0x1f:
		return "build without exceptions"
	case op == 0x12 || op == 0x13:
		return "build without tail calls"
	case op == 0x25 || op == 0x26 || op >= 0xd0 && op <= 0xd6:
		return "build without reference types"
	case op == OpMemoryInit || op == OpDataDrop:
		return "link with active data segments: without threads, or without bulk memory"
	case op >= 0xfc0c && op <= 0xfc11:
		return "a table is fixed when a policy is loaded; build without reference types"
	case op == 0xfb:
		return "build without garbage collection"
	case op == 0xfd:
		return "build without SIMD"
	case op == 0xfe:
		return "build without threads"
	}
	return "build for WebAssembly 1.0 with sign extension, bulk memory and several results at most"
}
