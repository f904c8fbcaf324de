package wasm

import (
	"fmt"
	"strings"

	"github.com/boardd/boardd/sdk/job"
)

// FaultKind says what a module did wrong.
type FaultKind string

// The kinds of faults.
const (
	Trap     FaultKind = "trap"     // an instruction failed, or the guest gave up
	OutFuel  FaultKind = "fuel"     // the call used up its fuel
	OutStack FaultKind = "stack"    // functions called each other too deeply
	Refused  FaultKind = "refused"  // the guest said that it failed
	Protocol FaultKind = "protocol" // what it returned is none of what abi.md lists
	Lost     FaultKind = "lost"     // its process ended or fell silent
)

// Fault is what a module did wrong. Its instance was thrown away.
type Fault struct {
	Kind   FaultKind
	Policy string
	Digest string
	Call   string // the export
	Text   string // what the guest or the engine said
	Trace  string // functions of the module, innermost first; empty where there are none
}

// Error returns the fault on one line.
func (f *Fault) Error() string {
	what := map[FaultKind]string{
		Trap: "it trapped", OutFuel: "it used up its fuel", OutStack: "its calls are nested too deeply",
		Refused: "it failed", Protocol: "its answer makes no sense", Lost: "its process was lost",
	}[f.Kind]
	text := fmt.Sprintf("%s: %s", f.Call, what)
	if f.Text != "" {
		text += ": " + f.Text
	}
	if f.Trace != "" {
		text += " (in " + strings.ReplaceAll(f.Trace, "\n", ", ") + ")"
	}
	return text
}

// Unwrap returns the kind of error that a fault is.
func (f *Fault) Unwrap() error { return job.Unavailable }

// split takes wazero's error apart: what happened, and where.
func split(err error) (text, trace string) {
	text, rest, _ := strings.Cut(err.Error(), "\nwasm stack trace:\n")
	text, _, _ = strings.Cut(text, "\nGo runtime stack trace:")
	text = strings.TrimPrefix(strings.TrimSuffix(text, " (recovered by wazero)"), "wasm error: ")
	var lines []string
	for line := range strings.Lines(rest) {
		if line = strings.TrimSpace(line); line != "" && len(lines) < maxTrace {
			name, _, _ := strings.Cut(line, "(")
			lines = append(lines, strings.TrimPrefix(name, "."))
		}
	}
	return text, strings.Join(lines, "\n")
}

// maxTrace is how many functions of a trace are kept.
const maxTrace = 8
