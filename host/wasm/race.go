//go:build race

package wasm

// bounded is false under the race detector, which reserves more address space than
// any limit would leave it, and takes ten times as long.
const bounded = false
