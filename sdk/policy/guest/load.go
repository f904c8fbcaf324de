//go:build wasm || amd64 || arm64

package guest

import "unsafe"

// The machines named above are little-endian and load from any address, so one
// load does what four would; the compiler joins the four on some of them only.

// Places are not negative: they come from 32 bits, and int has 64 here.

func get32(b []byte, at int) uint32 {
	_ = b[at+3]
	return *(*uint32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), at))
}

func get64(b []byte, at int) uint64 {
	_ = b[at+7]
	return *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), at))
}

func put32(b []byte, at int, v uint32) {
	_ = b[at+3]
	*(*uint32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), at)) = v
}

func put64(b []byte, at int, v uint64) {
	_ = b[at+7]
	*(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), at)) = v
}

func text32(s string, at int) uint32 {
	_ = s[at+3]
	return *(*uint32)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), at))
}

// text64 does not check: at+8 is at most the length of s.
func text64(s string, at int) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), at))
}
