package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/wirejson"
)

// The exit codes by which a command says more than yes or no; sysexits.h calls
// them EX_DATAERR and EX_TEMPFAIL.
const (
	exitBadData   = 65
	exitTemporary = 75
)

// jobCommand runs the command of worker run.
type jobCommand struct {
	*program
	path      string
	args      []string // the first one is the command as it was written
	grace     time.Duration
	passToken bool
	noLog     bool
	onto      *client.Board

	env            []string // what every command gets
	stdout, stderr io.Writer

	mu   sync.Mutex
	read string // the last token that was in the file
}

// outlet passes on what commands write. It never fails: that a reader is gone or a disk full
// is no reason to do a job again. What was lost is said once.
type outlet struct {
	to   io.Writer
	lost func(error)
	once sync.Once
}

// Write passes p on, and says that it did.
func (o *outlet) Write(p []byte) (int, error) {
	if _, err := o.to.Write(p); err != nil {
		o.once.Do(func() { o.lost(err) })
	}
	return len(p), nil
}

// prepare makes the environment that all commands share.
func (c *jobCommand) prepare() error {
	c.stdout = &outlet{to: c.out, lost: func(err error) { c.complain("what commands write to standard output is lost: " + err.Error()) }}
	c.stderr = &outlet{to: c.err, lost: func(error) {}} // where it would be said
	if c.output == "json" {
		c.stdout = c.stderr
	}
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if name != "BOARDD_TOKEN" && name != "BOARDD_TOKEN_FILE" && !strings.HasPrefix(name, "BOARDD_JOB_") {
			c.env = append(c.env, pair)
		}
	}
	if !c.passToken {
		return nil
	}
	if _, err := c.passed(); err != nil {
		return usagef("%v", err)
	}
	addr := strings.Join(c.addrs, ",")
	if addr == "" {
		addr = client.DefaultAddr
	}
	c.env = append(c.env, "BOARDD_ADDR="+addr, "BOARDD_BOARD="+c.board)
	return nil
}

// passed returns the token that a command is given. It may be renewed in its file while the
// worker runs; where the file can't be read, the last one that was in it may still be good.
func (c *jobCommand) passed() (string, error) {
	if c.token != "" || c.tokenFile == "" {
		return c.token, nil
	}
	content, err := os.ReadFile(c.tokenFile)
	c.mu.Lock()
	defer c.mu.Unlock()
	if token := string(bytes.TrimSpace(content)); token != "" {
		c.read = token
	}
	return c.read, err
}

// run runs the command on one job, or on each of its operations that is not
// finished. It is a client.Worker's handler.
func (c *jobCommand) run(ctx context.Context, claim *client.Claim) error {
	input, err := wirejson.Marshal(claim.GetJob())
	if err != nil {
		return fmt.Errorf("%w: the job has no JSON form: %w", client.ErrTrash, err)
	}
	if len(claim.GetJob().GetOperations()) == 0 {
		return c.logged(ctx, claim, nil, input)
	}
	return c.onto.Operate(ctx, claim, func(ctx context.Context, op *client.Operation) ([]byte, error) {
		err := c.logged(ctx, claim, op, input)
		if errors.Is(err, client.ErrTrash) {
			result, marshalErr := json.Marshal(err.Error())
			return result, errors.Join(err, marshalErr)
		}
		return nil, err
	})
}

// logged runs the command once. The lines that it writes become entries of the
// job's log, and come out as they are.
func (c *jobCommand) logged(ctx context.Context, claim *client.Claim, op *client.Operation, input []byte) error {
	if c.noLog {
		return c.once(ctx, claim, op, input, c.stdout, c.stderr)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	log := c.onto.LogWriter(ctx, claim, op.GetIndex(), func() { cancel(client.ErrCancelRequested) })
	err := c.once(ctx, claim, op, input, io.MultiWriter(c.stdout, log.Lines("stdout")), io.MultiWriter(c.stderr, log.Lines("stderr")))
	if failed := log.Close(); failed != nil && ctx.Err() == nil {
		c.complain(fmt.Sprintf("job %s: its log is not complete: %v", claim.GetUuid(), failed))
	}
	return err
}

// once runs the command, and on the end of ctx stops it.
func (c *jobCommand) once(ctx context.Context, claim *client.Claim, op *client.Operation, input []byte, stdout, stderr io.Writer) error {
	cmd := exec.Command(c.path) //nolint:noctx // the whole group is ended below, not the command alone
	cmd.Args = c.args
	cmd.Env = append(slices.Clip(c.env), variables(c.board, claim)...)
	if c.passToken {
		token, _ := c.passed()
		cmd.Env = append(cmd.Env, "BOARDD_TOKEN="+token)
	}
	if op != nil {
		cmd.Env = append(cmd.Env, "BOARDD_JOB_OPERATION="+strconv.Itoa(int(op.GetIndex())), "BOARDD_JOB_OPERATION_NAME="+withoutNUL(op.GetName()))
	}
	cmd.Stdin = bytes.NewReader(append(input, '\n'))
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = time.Second // a process that it left behind may hold its output open
	ownGroup(cmd)

	var result error // of the command, once ended is closed
	began, ended := make(chan error, 1), make(chan struct{})
	go func() {
		// The kernel ends the command with the thread that made it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		began <- err
		if err == nil {
			result = cmd.Wait()
		}
		close(ended)
	}()
	if err := <-began; err != nil {
		return fmt.Errorf("%w: the command did not start: %w", client.ErrRetry, err)
	}
	select {
	case <-ended:
		return verdict(cmd.ProcessState, result)
	case <-ctx.Done():
		c.stop(ctx, cmd, claim, ended)
		// What a command that was stopped says of itself is not taken for an answer:
		// many end with 0 when they are asked to stop.
		return context.Cause(ctx)
	}
}

// stop ends the command's process group and waits for the command.
func (c *jobCommand) stop(ctx context.Context, cmd *exec.Cmd, claim *client.Claim, ended <-chan struct{}) {
	grace := c.grace
	if lease := claim.GetLease().AsDuration(); lease > 0 && errors.Is(context.Cause(ctx), job.LeaseLost) {
		// A tenth of the lease is what the worker keeps back for this.
		grace = min(grace, lease/10)
	}
	if whole := claim.GetJob().GetTimeout().AsDuration(); whole > 0 && errors.Is(context.Cause(ctx), client.ErrTimeout) {
		grace = min(grace, whole/16) // half of what the worker keeps back
	}
	terminateGroup(cmd.Process)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	killGroup(cmd.Process) // or what it left behind
	<-ended
}

// verdict is what a command's end means for the job. One that succeeded has done it, though
// its input or output broke: a process that it left behind may hold them open.
func verdict(state *os.ProcessState, err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil || state != nil && state.Success():
		return nil
	case !errors.As(err, &exit):
		return fmt.Errorf("%w: %w", client.ErrRetry, err)
	case exit.ExitCode() == exitBadData:
		return fmt.Errorf("%w: exit status %d", errBadData, exitBadData)
	case exit.ExitCode() == exitTemporary:
		return fmt.Errorf("%w: exit status %d", errTemporary, exitTemporary)
	}
	return errors.New(exit.String())
}

var (
	errBadData   = plain{"bad data", client.ErrTrash}
	errTemporary = plain{"temporary failure", client.ErrRetry}
)

// plain is an error with words of its own.
type plain struct {
	text string
	is   error
}

func (p plain) Error() string { return p.text }
func (p plain) Unwrap() error { return p.is }

// variables are those of one job.
func variables(board string, claim *client.Claim) []string {
	owner := claim.GetOwner()
	env := []string{
		"BOARDD_JOB_UUID=" + claim.GetUuid(),
		"BOARDD_JOB_NAME=" + withoutNUL(claim.GetJob().GetName()),
		"BOARDD_JOB_BOARD=" + board,
		"BOARDD_JOB_ATTEMPT=" + strconv.Itoa(int(claim.GetAttempt())),
		"BOARDD_JOB_OWNER=" + withoutNUL(owner),
		"BOARDD_JOB_CLAIM_TOKEN=" + claim.GetToken(),
	}
	for _, key := range sortedKeys(claim.GetJob().GetLabels()) {
		env = append(env, "BOARDD_JOB_LABEL_"+variable(key)+"="+withoutNUL(claim.GetJob().GetLabels()[key]))
	}
	return env
}

// variable makes the name of a variable out of a label's key.
func variable(key string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, key)
}

// withoutNUL makes s fit into an environment, which can hold anything else.
func withoutNUL(s string) string { return strings.ReplaceAll(s, "\x00", "\uFFFD") }
