//go:build !wasm && !amd64 && !arm64

package guest

import "encoding/binary"

func get32(b []byte, at int) uint32    { return binary.LittleEndian.Uint32(b[at : at+4]) }
func get64(b []byte, at int) uint64    { return binary.LittleEndian.Uint64(b[at : at+8]) }
func put32(b []byte, at int, v uint32) { binary.LittleEndian.PutUint32(b[at:at+4], v) }
func put64(b []byte, at int, v uint64) { binary.LittleEndian.PutUint64(b[at:at+8], v) }

func text32(s string, at int) uint32 {
	s = s[at : at+4]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func text64(s string, at int) uint64 {
	return uint64(text32(s, at)) | uint64(text32(s, at+4))<<32
}
