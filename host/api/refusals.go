package api

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/boardd/boardd/host"
)

// Bounds on the log about refused requests and calls. What is above them is counted,
// and written with level debug only.
const (
	MaxRefusalLines  = 10 // of one caller in each refusalsWithin
	maxRefusedCaller = 64 // callers with lines of their own; the others share one's

	refusalsWithin = 10 * time.Second
)

// refusalLog writes who was refused what into the log, so that nobody can fill it: of each
// token, and of each address without one, so many lines, and then how many were left
// out.
type refusalLog struct {
	logger *slog.Logger

	mu      sync.Mutex
	callers map[string]*refusedCaller // those of the last refusalsWithin
}

// refusedCaller is how often somebody was refused.
type refusedCaller struct{ lines, left int }

// log writes one line, if the caller has one left.
func (f *refusalLog) log(ctx context.Context, caller, text string, attrs ...slog.Attr) {
	level := slog.LevelInfo
	if !f.allow(caller) {
		level = slog.LevelDebug
	}
	f.logger.LogAttrs(ctx, level, text, attrs...) //nolint:sloglint // the text is a constant of each caller
}

// allow counts a refusal, and reports whether it is written.
func (f *refusalLog) allow(caller string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.callers[caller]
	if c == nil && len(f.callers) >= maxRefusedCaller {
		caller = "others"
		c = f.callers[caller]
	}
	if c == nil {
		if f.callers == nil {
			f.callers = map[string]*refusedCaller{}
		}
		c = &refusedCaller{}
		f.callers[caller] = c
		time.AfterFunc(refusalsWithin, func() { f.forget(caller) })
	}
	if c.lines++; c.lines <= MaxRefusalLines {
		return true
	}
	c.left++
	return false
}

// forget begins anew with a caller, and says what was left out.
func (f *refusalLog) forget(caller string) {
	f.mu.Lock()
	c := f.callers[caller]
	delete(f.callers, caller)
	f.mu.Unlock()
	if c.left > 0 {
		f.logger.LogAttrs(context.Background(), slog.LevelInfo, "refusals were left out of the log",
			slog.String("caller", caller), slog.Int("left_out", c.left), slog.Duration("within", refusalsWithin))
	}
}

// callerOf names who has a token.
func callerOf(session *host.Session) string {
	who := session.WhoAmI()
	return who.Tenant + "/" + who.TokenName
}

// peerOf names who has none, by the address. Of an IPv6 address the first half counts:
// the other is its holder's to choose.
func peerOf(remote string) string {
	name, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	address, err := netip.ParseAddr(name)
	if err != nil || address.Unmap().Is4() {
		return name
	}
	prefix, err := address.WithZone("").Prefix(64)
	if err != nil {
		return name
	}
	return prefix.String()
}
