package plugin

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Info says what the program is.
func (p *Process) Info() driver.Info { return p.info }

// PID is the process's number.
func (p *Process) PID() int { return p.child.cmd.Process.Pid }

// Open configures the program and returns its driver. It may be called once for each
// process. Closing the driver ends the process.
func (p *Process) Open(ctx context.Context, c driver.Config) (driver.Driver, error) {
	if err := configure(ctx, p.cold, c); err != nil {
		return nil, err
	}
	r, err := newRemote(ctx, p.answer, p.hot, p.cold, p.fault, p.end)
	if err != nil {
		return nil, &job.Error{Op: "open", Kind: job.Unavailable, Err: err}
	}
	p.mu.Lock()
	p.driver = r
	p.mu.Unlock()
	return r, nil
}

// Exited is closed when the process has ended, for whatever reason.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Lost is closed when the driver of Open can not be used any more: its connection
// broke, or it was closed, or it broke the contract. What Apply says after that
// is about this process alone; a repetition at another may fare better.
func (p *Process) Lost() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.driver == nil {
		return p.exited
	}
	return p.driver.exec.done
}

// Ending says how the process ended, and the last that it wrote to standard
// error; nil while it runs.
func (p *Process) Ending() error {
	select {
	case <-p.exited:
	default:
		return nil
	}
	p.child.mu.Lock()
	defer p.child.mu.Unlock()
	text := p.child.errors.String()
	if text == "" {
		return fmt.Errorf("driver %s ended (%s)", p.name, p.child.state)
	}
	return fmt.Errorf("driver %s ended (%s); its standard error ends with %q", p.name, p.child.state, text)
}

// Faulty is closed when the driver has broken the contract: an answer cannot be right,
// or did not come in time. Its answers can no longer be trusted; it should be killed.
func (p *Process) Faulty() <-chan struct{} { return p.faulty }

// Fault says what was wrong; nil if nothing was.
func (p *Process) Fault() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faultErr
}

func (p *Process) fault(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faultErr == nil {
		p.faultErr = err
		p.child.logger.Error("the driver is faulty", "error", tame(err.Error(), maxErrorText))
		close(p.faulty)
	}
}

// await closes exited after the last of the output was read.
func (p *Process) await() {
	<-p.child.exited
	p.child.readers.Wait()
	close(p.exited)
	p.mu.Lock()
	r := p.driver
	p.mu.Unlock()
	if r != nil {
		r.exec.fail("the driver's process ended")
	}
}

// Kill ends the process: it lets it drain, asks it to stop, and ends it by force
// if that takes too long, which is at most 5 s + 3 s. Nobody should be using its
// driver any more.
func (p *Process) Kill() {
	p.mu.Lock()
	r, fault := p.driver, p.faultErr
	p.mu.Unlock()
	if r != nil && fault == nil && p.child.running() {
		_ = r.Close()
		return
	}
	p.end()
}

// Abort ends the process at once and frees everything that belongs to it.
func (p *Process) Abort() {
	if p.child.started() {
		_ = p.child.Kill(context.Background())
	}
	p.end()
}

// stopTimeout is how long go-plugin may take to stop a process. It waits for an
// answer of the process without a limit of its own.
const stopTimeout = 3 * time.Second

// end asks the process to stop and makes sure that it does.
func (p *Process) end() {
	p.killing.Do(func() {
		defer close(p.killed)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			p.client.Kill()
		}()
		timer := time.NewTimer(stopTimeout)
		defer timer.Stop()
		select {
		case <-stopped:
		case <-timer.C:
		}
		if p.child.started() {
			_ = p.child.Kill(context.Background())
			<-p.child.swept
		}
		p.mu.Lock()
		r := p.driver
		p.mu.Unlock()
		if r != nil {
			r.exec.fail("the driver was stopped")
		}
		if p.hot != nil {
			_ = p.hot.Close()
		}
		if p.cold != nil {
			_ = p.cold.Close()
		}
		select {
		case <-stopped:
		case <-time.After(time.Second): // it is gone; what go-plugin waits for is not worth it
		}
		p.child.release()
	})
	<-p.killed
}

// started reports whether there ever was a process.
func (c *child) started() bool {
	select {
	case <-c.began:
		return true
	default:
		return false
	}
}

// running reports whether there is a process.
func (c *child) running() bool {
	if !c.started() {
		return false
	}
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// A lineLog gives what a driver prints after its handshake to the relay.
type lineLog struct {
	relay *logRelay

	mu   sync.Mutex
	rest []byte
}

// Write takes any part of any number of lines.
func (l *lineLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, b...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok && len(l.rest) < maxLogText {
			return len(b), nil
		}
		if !ok {
			line, rest = l.rest, nil
		}
		if len(line) > 0 {
			l.relay.line(line)
		}
		l.rest = append(l.rest[:0], rest...)
	}
}
