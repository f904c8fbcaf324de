//go:build !linux || (!amd64 && !arm64)

package wasm

// Elsewhere a child process keeps what it may ask of the kernel.
var files []uintptr

func seal([]uintptr) error { return nil }
