package host

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/webhook"
	"github.com/boardd/boardd/sdk/job"
)

// hooks is what a board has to do with webhooks.
type hooks struct {
	tells []webhook.Hook // that are told of it
	sends []webhook.Hook // whose deliveries are jobs on it
}

// hooksOf returns what a board has to do with webhooks by the present configuration and the
// catalog.
func (h *Host) hooksOf(b config.Board) (s hooks) {
	d, at := h.Directory(), directory.At(b)
	for _, w := range d.Webhooks(at) {
		s.tells = append(s.tells, w.Hook)
	}
	s.sends = d.Deliveries(at)
	return s
}

// noHooks are those of a board that has to do with none, as most.
var noHooks hooks

// shared returns the webhooks as boards keep them.
func (s hooks) shared() *hooks {
	if len(s.tells) == 0 && len(s.sends) == 0 {
		return &noHooks
	}
	return &s
}

// told names the webhooks that are told of the board by what each is told of; "": none is.
func (s *hooks) told() string {
	if len(s.tells) == 0 {
		return ""
	}
	type told struct {
		Board, Name, Deliveries string
		Events                  []webhook.Kind
		Waiting                 time.Duration
	}
	list := make([]told, len(s.tells))
	for i := range s.tells {
		h := &s.tells[i]
		list[i] = told{h.Board, h.Name, h.Deliveries, h.Events, h.Waiting}
	}
	return digestOf(list)
}

// about reports whether a board has to do with a webhook.
func (s *hooks) about(board, name string) bool {
	is := func(h webhook.Hook) bool { return h.Board == board && h.Name == name }
	return slices.ContainsFunc(s.tells, is) || slices.ContainsFunc(s.sends, is)
}

// arrangeHook gives the boards that have or had to do with a webhook of the catalog those that
// they have to do with now.
func (h *Host) arrangeHook(of, record string) {
	board, name, _ := strings.Cut(record, "/")
	present, _ := h.Directory().StoredWebhook(catalog.At{Tenant: of, Name: board}, name)
	for _, on := range h.registry.names(of) {
		b := h.registry.board(of, on)
		if b == nil || on != board && on != present.Deliveries && !b.hooks.Load().about(board, name) {
			continue
		}
		b.hook(h.hooksOf(*b.config))
		if next := b.latest(); next != b {
			next.hook(h.hooksOf(*next.config))
		}
	}
}

// hook gives the board the webhooks that are declared now.
func (s *Hosted) hook(all hooks) {
	s.hooks.Store(all.shared())
	if c := s.courier.Load(); c != nil {
		c.Set(all.tells, all.sends)
	} else if r := s.resting.Load(); r != nil && all.told() != r.Told {
		s.call() // so that somebody follows the board
	}
}

// carry runs a board, which a move may have brought to its store, and what there is to do for
// webhooks as long as it runs: deliveries that are under way at its end are given back before.
func (s *Hosted) carry(ctx context.Context, h *Host, b *board.Board, came string) error {
	c := webhook.New(webhook.Options{
		Board: b, Came: came, Owner: "webhooks@" + h.id, Logger: s.logger(), Tally: s.told,
		Deliveries: func(ctx context.Context, name string) (*board.Board, error) {
			return h.Deliveries(ctx, s.config.Tenant, name)
		},
	})
	s.courier.Store(c)
	all := s.hooks.Load()
	c.Set(all.tells, all.sends)

	carrying, stop := context.WithCancel(ctx)
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	carried := make(chan struct{})
	go func() {
		defer close(carried)
		defer end()
		c.Run(carrying)
	}()
	defer func() {
		stop()
		<-carried
	}()
	return b.Run(running)
}

// Deliveries returns a board on which deliveries are jobs, as soon as it is open here.
func (h *Host) Deliveries(ctx context.Context, tenant, name string) (*board.Board, error) {
	found := h.registry.board(tenant, name)
	switch {
	case found == nil:
		return nil, NoBoard(name)
	case h.fleet.strange(found):
		return nil, job.Errorf(job.Unavailable, "the board %s lies in a store that only another server has", name)
	}
	found.used.Store(time.Now().UnixNano())
	return found.wait(ctx, h)
}

// posting are the calls that put jobs on a board, now or later.
var posting = []string{"PostJobs", "PutSchedule", "TriggerSchedule", "PutBatch", "CloseBatch", "PostAsItWas"}

// takes refuses jobs of callers on a board of deliveries: the server signs what stands there.
func (s *Hosted) takes(call string) error {
	if slices.Contains(posting, call) && len(s.hooks.Load().sends) > 0 {
		return job.Errorf(job.Precondition, "the board %s has the deliveries of webhooks, and takes no other jobs", s.config.Name)
	}
	return nil
}
