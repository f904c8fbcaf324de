package config

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/boardd/boardd/host/webhook"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
)

// hookPlace is where a webhook of a file stands, and its board.
type hookPlace struct {
	section *section
	tenant  string
	hook    webhook.Hook
}

// webhooks reads who is told of a board.
func (l *loader) webhooks(s *section, b *Board) {
	if l.wish {
		s.refuse("webhook", "it is declared in the server's configuration")
		return
	}
	first := map[string]Place{}
	for _, inner := range s.named("webhook") {
		if before, twice := first[inner.label]; twice {
			inner.problem(inner.at, "there is a webhook of this name already, at %s", before)
			continue
		}
		if first[inner.label] = inner.at; len(first) == webhook.MaxPerBoard+1 {
			inner.problem(inner.at, "a board has at most %d webhooks", webhook.MaxPerBoard)
		}
		hook := inner.webhook(b.Name)
		inner.close("board", b.Tenant+"/"+b.Name, "webhook", inner.label)
		b.Webhooks = append(b.Webhooks, hook)
		l.hooks = append(l.hooks, hookPlace{inner, b.Tenant, hook})
	}
}

func (s *section) webhook(board string) webhook.Hook {
	h := webhook.Hook{Board: board, Name: s.label, Networks: s.networks()}
	var ok bool
	if h.URL, ok = s.text("url"); ok {
		if err := webhook.CheckURL(h.URL, h.Networks); err != nil {
			s.wrong("url", "%s", job.MessageOf(err))
		}
	} else if !s.has("url") {
		s.wrong("url", "it is missing")
	}
	if secret, ok := s.text("secret"); ok {
		var err error
		if h.Secrets, err = webhook.ParseSecrets(secret); err != nil {
			s.wrong("secret", "%s", job.MessageOf(err))
		}
	} else if !s.has("secret") {
		s.wrong("secret", `it is missing; take it from the environment or a file: secret = file("hook.secret")`)
	}
	h.Events = s.events()
	h.Waiting, _ = s.duration("oldest_waiting", webhook.MinWaiting, webhook.MaxWaiting)
	if s.has("events") && len(h.Events) == 0 && !s.has("oldest_waiting") {
		s.wrong("events", "the list is empty, and oldest_waiting is missing: nothing would be told")
	}
	if h.Deliveries, _ = s.text("deliveries"); !s.has("deliveries") {
		s.wrong("deliveries", "it is missing; want the name of another board of the tenant, on which each delivery is a job")
	}
	h.Timeout, _ = s.duration("timeout", webhook.MinTimeout, webhook.MaxTimeout)
	return h
}

// events reads of what a webhook is told; absent: of everything.
func (s *section) events() (list []webhook.Kind) {
	names, ok := s.texts("events")
	if !ok {
		return []webhook.Kind{webhook.Ended, webhook.Trashed, webhook.Exhausted}
	}
	for _, name := range names {
		i := slices.Index(webhook.Kinds(), name)
		switch kind := webhook.Kind(max(i, 0)); { //nolint:gosec // it is one of them
		case i < 0:
			s.wrong("events", "want some of %s, got %q%s", strings.Join(webhook.Kinds(), ", "), clip(name), nearest.Hint(name, webhook.Kinds()))
		case !slices.Contains(list, kind):
			list = append(list, kind)
		}
	}
	return list
}

// networks reads which networks a webhook may reach besides the internet.
func (s *section) networks() (list []netip.Prefix) {
	texts, _ := s.texts("networks")
	if len(texts) > webhook.MaxNetworks {
		s.wrong("networks", "want at most %d", webhook.MaxNetworks)
	}
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil || network.Masked() != network {
			s.wrong("networks", `%q is not a network; want one such as "10.1.0.0/16" or "fd00:1::/64"`, clip(text))
			continue
		}
		list = append(list, network)
	}
	return list
}

// checkWebhooks demands that the boards of deliveries are there, and fit to be that.
func (l *loader) checkWebhooks() {
	for _, p := range l.hooks {
		s, name := p.section, p.hook.Deliveries
		if name == "" {
			continue // reported as missing
		}
		i := slices.IndexFunc(l.config.Boards, func(b Board) bool { return b.Tenant == p.tenant && b.Name == name })
		if i < 0 {
			s.wrong("deliveries", "the configuration has no board %q of the tenant %q%s", clip(name), p.tenant, nearest.Hint(name, l.boardsOf(p.tenant)))
			continue
		}
		switch to := l.config.Boards[i]; {
		case name == p.hook.Board:
			s.wrong("deliveries", "it is the board itself, whose deliveries would be told of again; want another one")
		case len(to.Webhooks) > 0:
			s.wrong("deliveries", "the board %q has webhooks itself; want one that has none", name)
		case to.Observe:
			s.wrong("deliveries", "the board %q is only observed: nothing is posted on it", name)
		case len(to.Schedules) > 0:
			s.wrong("deliveries", "the board %q has schedules; want one that has nothing but deliveries", name)
		}
	}
}
