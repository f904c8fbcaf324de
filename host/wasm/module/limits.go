package module

// Limits bound what a module may be, so that reading, compiling and running it
// takes bounded time and memory. The zero value of a field is its default.
type Limits struct {
	Bytes       int // of the module; DefaultBytes
	MemoryPages int // of 64 KiB, that the module may use; DefaultMemoryPages, at most MaxMemoryPages

	// Imports are functions that may be imported besides those of abi.md, by
	// "MODULE.NAME": for programs that bring their own host.
	Imports map[string]FuncType
}

// The bounds that a plan may change.
const (
	DefaultBytes       = 4 << 20
	MaxBytes           = 16 << 20
	DefaultMemoryPages = 256  // 16 MiB
	MaxMemoryPages     = 1024 // 64 MiB
)

// The bounds that are the same for everybody: each is well above what compilers
// make, and keeps some cost of reading or compiling in hand.
const (
	MaxTypes           = 2_000
	MaxParams          = 64 // of one type
	MaxResults         = 16 // of one type
	MaxImports         = 100
	MaxFunctions       = 20_000
	MaxTable           = 20_000 // elements
	MaxGlobals         = 1_000
	MaxExports         = 256
	MaxElementSegments = 4_000
	MaxDataSegments    = 100_000
	MaxCustomSections  = 64
	MaxName            = 256 // bytes of the name of an import or export

	// Of one function.
	MaxBody         = 128 << 10 // bytes
	MaxLocals       = 2_000     // parameters included
	MaxNesting      = 1_024     // blocks in blocks
	MaxOperands     = 1_024     // on the operand stack
	MaxBranchTable  = 4_096     // labels of one br_table
	MaxBranches     = 16_384    // labels of all br_tables
	MaxBlockLocals  = 262_144   // blocks times locals: what a compiler's time grows with
	MaxModuleBlocks = 16 << 20  // the sum of it over all functions
)

// WithDefaults returns the limits with what is zero filled in and what is too
// large cut.
func (l Limits) WithDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	if l.MemoryPages <= 0 {
		l.MemoryPages = DefaultMemoryPages
	}
	l.Bytes = min(l.Bytes, MaxBytes)
	l.MemoryPages = min(l.MemoryPages, MaxMemoryPages)
	return l
}
