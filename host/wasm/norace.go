//go:build !race

package wasm

// bounded says whether child processes limit their own address space and time.
const bounded = true
