//go:build race

package wasm

// limitsMemory is false under the race detector, which reserves more address
// space than any limit would leave it.
const limitsMemory = false
