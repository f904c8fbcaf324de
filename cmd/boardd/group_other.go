//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// Without process groups only the command itself is ended, and at once.

func ownGroup(*exec.Cmd)           {}
func terminateGroup(p *os.Process) { _ = p.Kill() }
func killGroup(p *os.Process)      { _ = p.Kill() }
