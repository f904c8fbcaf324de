//go:build !linux

package plugin

import "os"

// takeStdout returns standard output for the handshake and lets what prints with
// package fmt write to standard error.
func takeStdout() *os.File {
	handshake := os.Stdout
	os.Stdout = os.Stderr
	return handshake
}
