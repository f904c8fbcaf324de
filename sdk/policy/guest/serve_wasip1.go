//go:build wasip1

package guest

import (
	"unsafe"

	"github.com/boardd/boardd/sdk/policy/abi"
)

var (
	served *Policy
	room   []byte // keeps what was allocated for the host's blocks
)

// Serve makes a policy the one that the module exports. It is called from an
// init function; main stays empty.
func Serve(p *Policy) { served = p }

//go:wasmexport boardd_policy_abi_1
func marker() {}

//go:wasmexport boardd_alloc
func alloc(size int32) int32 {
	room = make([]byte, int(size)+abi.Alignment)
	at := uintptr(unsafe.Pointer(&room[0]))
	return int32((at + abi.Alignment - 1) &^ (abi.Alignment - 1))
}

func handle(at unsafe.Pointer, n int32, call abi.Call) int32 {
	if served == nil {
		return abi.Failed
	}
	return Handle(served, unsafe.Slice((*byte)(at), int(n)), call)
}

//go:wasmexport boardd_configure
func configure(at unsafe.Pointer, n int32) int32 { return handle(at, n, abi.Configure) }

//go:wasmexport boardd_eligible
func eligible(at unsafe.Pointer, n int32) int32 { return handle(at, n, abi.Eligible) }

//go:wasmexport boardd_score
func score(at unsafe.Pointer, n int32) int32 { return handle(at, n, abi.Score) }

//go:wasmexport boardd_rank_keys
func rankKeys(at unsafe.Pointer, n int32) int32 { return handle(at, n, abi.RankKeys) }

//go:wasmexport boardd_explain
func explain(at unsafe.Pointer, n int32) int32 { return handle(at, n, abi.Explain) }
