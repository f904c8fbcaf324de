package auditor

import (
	"context"
	"time"

	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/sleep"
)

// publishEvery is how often the head of the audit log is put into the catalog,
// where whoever cuts off the log's tail does not reach. It is put there at the end,
// too, if that does not take too long.
const (
	publishEvery  = time.Minute
	publishWithin = 10 * time.Second
)

// publish compares the log with its last published head, and then publishes it
// now and then.
func (a *Auditor) publish(ctx context.Context) {
	for compared := false; ; {
		if c := a.options.Catalog(); c != nil && c.Current() == nil {
			if !compared {
				compared = a.compare(ctx, c) == nil
			}
			a.publishHead(ctx, c)
			a.witness(ctx, c)
		}
		if err := a.flush(time.Now().Unix()); err != nil {
			a.options.Logger.Warn("refusals could not be counted in the audit log", "error", err)
		}
		wait := publishEvery
		if !compared {
			wait = time.Second
		}
		if sleep.For(ctx, wait) != nil {
			return
		}
	}
}

func (a *Auditor) publishHead(ctx context.Context, c *catalog.Catalog) {
	head := a.log.Load().Head()
	if head.Sequence == 0 {
		return
	}
	err := c.PublishHead(ctx, catalog.Head{Host: a.options.Host, Sequence: head.Sequence, Hash: head.Hash, At: time.Now().UTC(), Key: a.key.Public().String()})
	if err != nil && ctx.Err() == nil {
		a.options.Logger.Warn("the head of the audit log could not be published", "error", err)
	}
}

// compare finds out whether the log lost its tail while the host was away.
func (a *Auditor) compare(ctx context.Context, c *catalog.Catalog) error {
	head, ok, err := c.Head(ctx, a.options.Host)
	if err != nil || !ok {
		return err
	}
	problem, err := a.against(head)
	if err != nil {
		return err
	}
	if problem != "" {
		a.options.Logger.Error("the audit log was changed while the server was away", "problem", problem)
		return a.log.Load().Append(audit.Record{Call: audit.TamperedCall, Result: problem})
	}
	return nil
}

func (a *Auditor) against(head catalog.Head) (string, error) {
	log := a.log.Load()
	start, err := audit.First(log.Folder)
	if err != nil {
		return "", err
	}
	at := func(n uint64) string { return audit.Hash(log.Folder, n) }
	return audit.CheckHead(start, log.Head(), audit.Chain{Sequence: head.Sequence, Hash: head.Hash}, at), nil
}

// witness puts the heads that other servers have published into the own log, if they
// are other ones than the last that were put there. So whoever changes another one's
// log, and what is published of it, has to change this one too.
func (a *Auditor) witness(ctx context.Context, c *catalog.Catalog) {
	heads, err := c.Heads(ctx)
	if err != nil {
		return // the next time
	}
	for _, head := range heads {
		if head.Host == a.options.Host || a.witnessed[head.Host] == head.Sequence {
			continue
		}
		err := a.log.Load().Note(audit.Record{Call: audit.HeadCall, Name: head.Host, Items: int64(head.Sequence), Result: head.Hash})
		if err != nil {
			return
		}
		if a.witnessed == nil {
			a.witnessed = map[string]uint64{}
		}
		a.witnessed[head.Host] = head.Sequence
	}
}
