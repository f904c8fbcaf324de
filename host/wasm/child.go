package wasm

import (
	"context"
	"errors"
	"os/exec"
)

// Child returns the command that a child process is: this program, told by its
// arguments to call ChildMain.
type Child func(ctx context.Context) *exec.Cmd

func (e *Engine) compileInChild(context.Context, []byte) error { return errors.New("todo") }

func startProcess(context.Context, *pool) (runner, error) { return nil, errors.New("todo") }

// ChildArgument is the first argument of a child process.
const ChildArgument = "policy-child"

// ChildMain is all that a child process does.
func ChildMain([]string) int { return 1 }
