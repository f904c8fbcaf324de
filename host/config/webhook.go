package config

import (
	"cmp"
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

// hookFields are the fields of a webhook in the API whose settings are called otherwise.
var hookFields = map[string]string{"oldestWaiting": "oldest_waiting", "secrets": "secret"}

func (s *section) webhook(board string) webhook.Hook {
	h := webhook.Hook{Board: board, Name: s.label, Networks: s.networks(), Events: s.events(), Paused: s.truth("paused")}
	h.URL, _ = s.text("url")
	h.Deliveries, _ = s.text("deliveries")
	h.Waiting, _ = s.duration("oldest_waiting", webhook.MinWaiting, webhook.MaxWaiting)
	h.Timeout, _ = s.duration("timeout", webhook.MinTimeout, webhook.MaxTimeout)
	if secret, ok := s.text("secret"); ok {
		var err error
		if h.Secrets, err = webhook.ParseSecrets(secret); err != nil {
			s.wrong("secret", "%s", job.MessageOf(err))
		}
	} else if !s.has("secret") && !s.loader.wish {
		s.wrong("secret", `it is missing; take it from the environment or a file: secret = file("hook.secret")`)
	}
	for _, flaw := range h.Flaws() {
		if flaw.Field == "secrets" && !s.has("secret") {
			continue // it was said; and what is applied keeps those that it has, or gets a new one
		}
		if setting := cmp.Or(hookFields[flaw.Field], flaw.Field); !s.bad[setting] {
			s.wrong(setting, "%s", flaw.Text)
		}
	}
	return h
}

// events reads of what a webhook is told; absent: of everything.
func (s *section) events() (list []webhook.Kind) {
	names, ok := s.texts("events")
	if !ok {
		return []webhook.Kind{webhook.Ended, webhook.Trashed, webhook.Exhausted}
	}
	for _, name := range names {
		switch kind, ok := webhook.KindNamed(name); {
		case !ok:
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
	for _, text := range texts {
		network, err := webhook.ParseNetwork(text)
		if err != nil {
			s.wrong("networks", "%s", job.MessageOf(err))
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
		if s.bad["deliveries"] {
			continue
		}
		i := slices.IndexFunc(l.config.Boards, func(b Board) bool { return b.Tenant == p.tenant && b.Name == name })
		if i < 0 && l.wish {
			continue // the server may have it
		}
		if i < 0 {
			s.wrong("deliveries", "the configuration has no board %q of the tenant %q%s", clip(name), p.tenant, nearest.Hint(name, l.boardsOf(p.tenant)))
			continue
		}
		to := l.config.Boards[i]
		target := webhook.Target{Observed: to.Observe, Hooked: len(to.Webhooks) > 0, Used: len(to.Schedules) > 0}
		if err := p.hook.CheckTarget(target); err != nil {
			s.wrong("deliveries", "%s", job.MessageOf(err))
		}
	}
}
