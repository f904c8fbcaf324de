//go:build wasm || amd64 || arm64

package guest

import "unsafe"

// The machines named above are little-endian and load from any address, so one
// load does what four would; the compiler joins the four on some of them only.

func get32(b []byte, at int) uint32 {
	p := b[at : at+4]
	return *(*uint32)(unsafe.Pointer(&p[0]))
}

func get64(b []byte, at int) uint64 {
	p := b[at : at+8]
	return *(*uint64)(unsafe.Pointer(&p[0]))
}

func put32(b []byte, at int, v uint32) {
	p := b[at : at+4]
	*(*uint32)(unsafe.Pointer(&p[0])) = v
}

func put64(b []byte, at int, v uint64) {
	p := b[at : at+8]
	*(*uint64)(unsafe.Pointer(&p[0])) = v
}
