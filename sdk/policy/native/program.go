package native

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy/abi"
	"github.com/boardd/boardd/sdk/policy/block"
	"github.com/boardd/boardd/sdk/policy/guest"
)

// A policy can be a program of its own, too: boardd policy test makes one of the
// same source as the module, and compares both. Blocks go to its standard input
// and come back on its standard output:
//
//	there: call u32, length u32, block
//	back:  code u32, length u32, block

var le = binary.LittleEndian

// Main answers what comes from standard input with the policy that guest.Serve was
// given, and exits. It is called from the last init function of a program whose
// main does nothing.
func Main() {
	if err := answer(guest.Served(), os.Stdin, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err) // nobody else to tell
		os.Exit(1)
	}
	os.Exit(0)
}

func answer(p *guest.Policy, in io.Reader, out io.Writer) error {
	if p == nil {
		return errors.New("no init function called guest.Serve")
	}
	input, output := bufio.NewReader(in), bufio.NewWriter(out)
	for {
		call, b, err := readBlock(input)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		code := guest.Handle(p, b, abi.Call(call))
		if err := errors.Join(writeBlock(output, uint32(code), b), output.Flush()); err != nil {
			return err
		}
	}
}

func readBlock(in io.Reader) (head uint32, b []byte, err error) {
	var heads [8]byte
	if _, err := io.ReadFull(in, heads[:]); err != nil {
		return 0, nil, err
	}
	n := le.Uint32(heads[4:])
	if n > abi.MaxBlock {
		return 0, nil, fmt.Errorf("a block of %d bytes: want at most %d", n, abi.MaxBlock)
	}
	b = make([]byte, n)
	if _, err = io.ReadFull(in, b); errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return le.Uint32(heads[:]), b, err
}

func writeBlock(out io.Writer, head uint32, b []byte) error {
	heads := le.AppendUint32(le.AppendUint32(nil, head), uint32(len(b)))
	_, err := out.Write(append(heads, b...))
	return err
}

// Start runs a program that calls Main as a policy. Close ends it.
func Start(cmd *exec.Cmd, manifest []byte, set map[string]any) (*block.Rule, error) {
	m, values, form, err := configured(manifest, set)
	if err != nil {
		return nil, err
	}
	p, err := startProgram(cmd)
	if err != nil {
		return nil, err
	}
	if code, err := p.ask(abi.Configure, form); err != nil || code != abi.OK {
		if err == nil {
			err = job.Errorf(job.Invalid, "the policy %s refused its parameters: %s", m.Name, block.Text(form))
		}
		return nil, errors.Join(err, p.Close())
	}
	return block.New(m, values, p)
}

// program is a machine with one seat.
type program struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	room []byte
	turn sync.Mutex
}

func startProgram(cmd *exec.Cmd) (p *program, err error) {
	p = &program{cmd: cmd, room: make([]byte, abi.MaxBlock)}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, cmd.Start()
}

// ask has the program answer a block, in place.
func (p *program) ask(call abi.Call, b []byte) (code int32, err error) {
	if err := writeBlock(p.in, uint32(call), b); err != nil {
		return 0, fmt.Errorf("the policy's program ended: %w", err)
	}
	back, answer, err := readBlock(p.out)
	if err != nil || len(answer) != len(b) {
		return 0, fmt.Errorf("the policy's program ended: %w", err)
	}
	copy(b, answer)
	return int32(back), nil
}

// Borrow implements block.Machine.
func (p *program) Borrow(context.Context) (block.Seat, error) {
	p.turn.Lock()
	return p, nil
}

// Room implements block.Seat.
func (p *program) Room() []byte { return p.room }

// Call implements block.Seat.
func (p *program) Call(_ context.Context, call abi.Call, total int) error {
	code, err := p.ask(call, p.room[:total])
	if err == nil && code != abi.OK {
		err = fmt.Errorf("the policy failed: %s", block.Text(p.room))
	}
	return err
}

// Return implements block.Seat.
func (p *program) Return(bool) { p.turn.Unlock() }

// Close implements block.Machine.
func (p *program) Close() error {
	err := p.in.Close()
	if waited := p.cmd.Wait(); waited != nil {
		return waited
	}
	return err
}
