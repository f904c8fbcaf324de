package config

import "fmt"

// Wish reads a file that says which tenants, policies and boards there should be, in the
// language of the configuration: tenant blocks with limits, policy blocks, which may name a
// tenant, and board blocks, of which webhooks need no secret. Backends and tenants that it
// names are the server's to know, and so are policies and boards of deliveries that it does
// not have. Its error is everything that is wrong, as Problems.
func Wish(path string, env func(string) (string, bool)) (*Config, error) {
	l := &loader{source: Source{Env: env}, config: &Config{}, once: map[string]Place{}, policies: map[string]policyBlock{}, wish: true}
	l.config.places = places{}
	l.open(path)
	l.checkTwice()
	l.checkWebhooks()
	if len(l.problems) > 0 {
		return nil, l.problems.sort(l.files)
	}
	return l.config, nil
}

// wished reads what stands outside of all blocks of such a file.
func (l *loader) wished(s *section) {
	for _, inner := range s.named("tenant") {
		l.tenant(inner)
	}
	for _, inner := range s.named("board") {
		l.board(inner)
	}
	for _, inner := range s.named("policy") {
		l.policy(inner)
	}
	for _, kind := range []string{"token", "oidc", "backend", "catalog", "tls", "tracing", "metrics", "audit", "server_limits"} {
		s.blocks = append(s.blocks, kind)
		for _, block := range s.body.Blocks {
			if block.Type == kind {
				s.problem(s.start(block.TypeRange), "%s: only tenants with their limits, policies and boards can be applied%s", kind, insteadOf(kind))
			}
		}
	}
	s.close("", "")
}

func insteadOf(kind string) string {
	if kind == "token" {
		return "; boardd token create makes a token and prints its secret"
	}
	return ""
}

// checkTwice finds what is wished for twice.
func (l *loader) checkTwice() {
	first := map[string]Place{}
	for i, s := range l.boards {
		b := l.config.Boards[i]
		name := b.Tenant + "/" + b.Name
		if before, twice := first[name]; twice {
			s.problem(s.at, "the tenant %q has a board of this name already, at %s", b.Tenant, before)
		}
		first[name] = s.at
	}
	for _, p := range l.issuers {
		p.section.problem(p.section.at, "oidc can't be applied: it stands in the server's configuration")
	}
	for _, p := range l.tokens {
		p.section.problem(p.section.at, "%s", fmt.Sprintf("tokens can't be applied%s", insteadOf("token")))
	}
}
