// Package abi holds the numbers of the binary interface between a board and a
// policy module. abi.md, beside it in sdk/policy, says what they mean;
// boardd_policy.h says the same in C, and a test compares the two. It imports
// nothing, so that a guest pays nothing for it.
package abi

// The version that this package describes. A larger minor only appends fields.
const (
	Magic = 0x31504442 // "BDP1", little-endian
	Major = 1
	Minor = 0
)

// What a module exports.
const (
	ExportMemory     = "memory"
	ExportMarker     = "boardd_policy_abi_1" // never called
	ExportInitialize = "_initialize"         // optional, called once
	ExportAlloc      = "boardd_alloc"
	ExportConfigure  = "boardd_configure" // optional, called once after it
	ExportEligible   = "boardd_eligible"
	ExportScore      = "boardd_score"
	ExportRankKeys   = "boardd_rank_keys"
	ExportExplain    = "boardd_explain"
)

// What a module may import.
const (
	ModuleHost = "boardd1"
	ImportLog  = "log"
	ModuleWASI = "wasi_snapshot_preview1"
)

// Section is the name of the custom section that holds the manifest.
const Section = "boardd.policy"

// Return codes of every call.
const (
	OK     = 0
	Failed = 1 // the block's text says why
)

// Call says which export a block is for.
type Call uint32

// The calls.
const (
	Eligible Call = 1 + iota
	Score
	RankKeys
	Configure
	Explain
)

// Export returns the name of the export that a call reaches.
func (c Call) Export() string {
	switch c {
	case Eligible:
		return ExportEligible
	case Score:
		return ExportScore
	case RankKeys:
		return ExportRankKeys
	case Configure:
		return ExportConfigure
	case Explain:
		return ExportExplain
	}
	return ""
}

// Offsets of the header's fields. A pair is (offset, length) or (offset, count),
// u32 each; every offset counts from the start of the block.
const (
	HMagic      = 0
	HMajor      = 4 // u16
	HMinor      = 6 // u16
	HHeaderSize = 8
	HTotal      = 12 // bytes of the block
	HCall       = 16
	HCount      = 20 // records
	HRecords    = 24 // offset
	HRecordSize = 28 // stride
	HOut        = 32 // offset
	HOutSize    = 36 // stride
	HNow        = 40 // i64, ns since 1970; 0: withheld
	HWorker     = 48 // pair: table of labels
	HParameters = 56 // pair: offset, count of cells
	HText       = 64 // pair: offset, room
	HTextLength = 72 // the guest writes it
	HIndex      = 76 // the record that Explain is about
	HeaderSize  = 96
)

// Offsets of a job's fields.
const (
	JID                = 0
	JSequence          = 16 // u64
	JCreated           = 24 // i64 ns
	JNotBefore         = 32 // i64 ns; 0: none
	JPriority          = 40 // i32, -2 very high to 2 very low
	JAttempt           = 44 // i32
	JMaxAttempts       = 48 // i32; 0: no limit
	JOperationPriority = 52 // i32
	JName              = 56 // pair
	JLabels            = 64 // pair
	JFacts             = 72 // pair: offset, count of cells
	JobSize            = 96
)

// Offsets of a key's fields.
const (
	KKey     = 0  // pair
	KRunning = 8  // i64
	KWaiting = 16 // i64
	KServed  = 24 // i64
	KOldest  = 32 // i64 ns; 0: none waits
	KeySize  = 48
)

// Out records.
const (
	ScoreSize = 8 // i64

	VDecision   = 0 // u8
	VReason     = 4 // u32
	VUntil      = 8 // i64 ns
	VerdictSize = 16

	RScore   = 0  // i64
	RFull    = 8  // u32: 1, nothing of this key may be claimed now
	RMost    = 12 // u32: how many of it may run at the same time; 0: not said
	RankSize = 16

	ExplainSize = 0 // its answer is the text
)

// NoOpinion is the score of a job that the policy leaves to the next order.
const NoOpinion = -1 << 63

// Cells: values of facts and parameters.
const (
	CTag     = 0 // u8
	CLength  = 4 // u32: bytes, or items of a list or a zone
	CValue   = 8 // i64 or f64; or u64, an offset
	CellSize = 16
)

// Tag says what a cell holds.
type Tag uint8

// The tags.
const (
	Absent   Tag = iota
	Int          // i64
	Float        // f64, never NaN
	Bool         // i64, 0 or 1
	String       // bytes at the offset, UTF-8
	List         // pairs at the offset
	Map          // a table of labels at the offset; Length is in bytes
	Time         // i64 ns since 1970
	Duration     // i64 ns
	Zone         // steps at the offset: i64 ns from when, i64 seconds east of UTC
)

// Bounds of one block.
const (
	MaxBlock    = 512 << 10 // bytes
	MaxRecords  = 1024      // jobs or keys
	TextSize    = 1 << 10   // room for an error or an explanation
	Alignment   = 16        // of the block, of its records and its out area
	MaxLog      = 1 << 10   // bytes of one line
	MaxLogBytes = 4 << 10   // of one call; what is over is dropped
)
