//go:build !race

package wasm

// limitsMemory says whether child processes limit their own address space.
const limitsMemory = true
