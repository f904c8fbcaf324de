package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/boardd/boardd/host/pin"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/host/wasm/module"
	"github.com/boardd/boardd/policies"
	"github.com/boardd/boardd/sdk/nearest"
	"github.com/boardd/boardd/sdk/policy"
)

// MaxRules is how many eligibility blocks a board may have.
const MaxRules = 16

// Policy is a module that boards may use under a name.
type Policy struct {
	Name   string
	Path   string
	Tenant string // whose it is to be, of a file that is applied; else empty

	digest string // of the module, as wasm.Digest has it
	pinned bool   // no other module will do
}

// Digest is that of the module, as wasm.Digest has it, when the configuration was
// read.
func (p *Policy) Digest() string { return p.digest }

// Rule is a policy that a board asks, with its parameters.
type Rule struct {
	Policy  string          `json:"policy"`
	Params  json.RawMessage `json:"params,omitempty"` // a JSON object
	OnError string          `json:"on_error,omitempty"`
	Module  string          `json:"module,omitempty"` // digest of the file of a policy block, so that another file is another rule
}

// What becomes of jobs whose policy failed.
const (
	OnErrorDeny    = "deny"    // eligibility: nobody may have them; the default
	OnErrorAllow   = "allow"   // eligibility: as if the policy had allowed them
	OnErrorLast    = "last"    // ordering: the last scores stand, those of the version before for new jobs; the default
	OnErrorBuiltin = "builtin" // ordering: the board's own order
)

// Parameters returns a rule's parameters by name.
func (r *Rule) Parameters() (map[string]any, error) {
	set := map[string]any{}
	if len(r.Params) == 0 {
		return set, nil
	}
	d := json.NewDecoder(strings.NewReader(string(r.Params)))
	d.UseNumber()
	return set, d.Decode(&set)
}

// SameRules reports whether two boards ask the same policies.
func SameRules(b, c Board) bool {
	same := func(x, y Rule) bool {
		return x.Policy == y.Policy && x.OnError == y.OnError && x.Module == y.Module && string(x.Params) == string(y.Params)
	}
	if (b.Ordering == nil) != (c.Ordering == nil) || b.Ordering != nil && !same(*b.Ordering, *c.Ordering) {
		return false
	}
	return slices.EqualFunc(b.Eligibility, c.Eligibility, same)
}

// CheckUse says why a policy cannot be what a board has it for: "eligibility" or
// "ordering".
func CheckUse(use string, m *policy.Manifest) error {
	switch {
	case use == "eligibility" && !m.Eligibility:
		return fmt.Errorf("the policy %s does not say who may have a job: use it for ordering", m.Name)
	case use == "ordering" && !m.Ordering && m.Counts == "":
		return fmt.Errorf("the policy %s orders nothing: use it for eligibility", m.Name)
	}
	return nil
}

// policyBlock is where a policy of a file stands, and what its module declares.
type policyBlock struct {
	section  *section
	declared *policy.Declared // nil if something is wrong with it
}

func (l *loader) policy(s *section) {
	defer s.close("policy", s.label)
	if slices.Contains(policies.Names(), s.label) {
		s.problem(s.at, "boardd brings a policy of this name: choose another one")
	}
	if first, twice := l.policies[s.label]; twice {
		s.problem(s.at, "there is a policy of this name already, at %s", first.section.at)
		return
	}
	p := Policy{Name: s.label}
	if l.wish {
		p.Tenant = tenant.Default
		if name, ok := s.text("tenant"); ok {
			p.Tenant = name
		}
	}
	want := s.digest("sha256")
	path, ok := s.path("path")
	if !s.has("path") {
		s.wrong("path", "it is missing; want the file of a WebAssembly module")
	}
	b := policyBlock{section: s}
	if ok {
		p.Path, p.pinned = path, want != ""
		b.declared, p.digest = s.module(path, want)
		l.config.Policies = append(l.config.Policies, p)
	}
	l.policies[s.label] = b
}

// module reads a module's manifest, and says everything that is wrong with it and
// shows without running it.
func (s *section) module(path, want string) (*policy.Declared, string) {
	b, err := ReadModule(path)
	if err != nil {
		s.wrong("path", "%s: %s", path, plainError(err))
		return nil, ""
	}
	if _, err := pin.Check(path, b, want); err != nil {
		s.wrong("sha256", "%v", err)
		return nil, ""
	}
	declared, err := wasm.Check(b, module.Limits{})
	if err != nil {
		s.wrong("path", "%s: %v", path, err)
		return nil, ""
	}
	return declared, wasm.Digest(b)
}

// Read reads the policy's module again, and refuses another one where the
// configuration, or a signature, says which it is.
func (p *Policy) Read() ([]byte, error) {
	b, err := ReadModule(p.Path)
	if err == nil && p.pinned {
		_, err = pin.Check(p.Path, b, p.digest)
	}
	return b, err
}

// ReadModule reads the file of a policy.
func ReadModule(path string) ([]byte, error) {
	most := int64(module.Limits{}.WithDefaults().Bytes)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a file")
	case info.Size() > most:
		return nil, fmt.Errorf("it has %d bytes; want at most %d", info.Size(), most)
	}
	return os.ReadFile(path)
}

// ruleBlock is where a rule of a file stands.
type ruleBlock struct {
	section *section
	use     string
	rule    Rule
}

// rules reads the policies of a board.
func (l *loader) rules(s *section, b *Board) {
	for _, inner := range s.several("eligibility") {
		r := l.rule(inner, "eligibility", OnErrorDeny, OnErrorAllow)
		inner.close("board", b.Tenant+"/"+b.Name, "eligibility", strconv.Itoa(len(b.Eligibility)))
		b.Eligibility = append(b.Eligibility, r)
	}
	if len(b.Eligibility) > MaxRules {
		s.problem(s.at, "eligibility: %d blocks are too many: want at most %d", len(b.Eligibility), MaxRules)
	}
	if inner := s.single("ordering"); inner != nil {
		r := l.rule(inner, "ordering", OnErrorLast, OnErrorBuiltin)
		inner.close("board", b.Tenant+"/"+b.Name, "ordering")
		b.Ordering = &r
	}
}

func (l *loader) rule(s *section, use string, onError ...string) Rule {
	var r Rule
	var ok bool
	if r.Policy, ok = s.text("policy"); ok && r.Policy == "" || !s.has("policy") {
		s.wrong("policy", "it is missing; want the name of a policy block, or one of %s", strings.Join(policies.Names(), ", "))
	}
	r.Params = s.object("params")
	if string(r.Params) == "{}" {
		r.Params = nil
	}
	if s.has("on_error") {
		r.OnError = s.choice("on_error", onError...)
	} else {
		s.settings = append(s.settings, "on_error")
	}
	l.uses = append(l.uses, ruleBlock{section: s, use: use, rule: r})
	return r
}

// checkRules finds what is wrong between policies and the boards that use them.
func (l *loader) checkRules() {
	for i := range l.config.Boards {
		b := &l.config.Boards[i]
		for at := range b.Eligibility {
			l.nameModule(&b.Eligibility[at])
		}
		if b.Ordering != nil {
			l.nameModule(b.Ordering)
		}
	}
	for _, u := range l.uses {
		if u.rule.Policy == "" {
			continue
		}
		declared, ok := policies.Declared(u.rule.Policy)
		if !ok {
			block, is := l.policies[u.rule.Policy]
			if !is {
				known := append(policies.Names(), slices.Sorted(maps.Keys(l.policies))...)
				u.section.wrong("policy", "there is no policy %q%s", clip(u.rule.Policy), nearest.Among(u.rule.Policy, known))
				continue
			}
			if declared = block.declared; declared == nil {
				continue // its block was complained about
			}
		}
		set, err := u.rule.Parameters()
		if err != nil {
			u.section.wrong("params", "%v", err)
			continue
		}
		m, _, err := declared.Bind(set)
		if err == nil && ok {
			err = tryBuiltin(u.rule.Policy, set)
		}
		if err != nil {
			u.section.wrong("params", "%v", err)
			continue
		}
		if err := CheckUse(u.use, &m); err != nil {
			u.section.wrong("policy", "%v", err)
		}
	}
}

// nameModule notes which file a rule is about.
func (l *loader) nameModule(r *Rule) {
	for _, p := range l.config.Policies {
		if p.Name == r.Policy {
			r.Module = p.digest
		}
	}
}

// tryBuiltin lets one of boardd's own policies read its parameters: what is wrong
// with their values only it can tell.
func tryBuiltin(name string, set map[string]any) error {
	p, err := policies.New(name, set)
	if err != nil {
		return err
	}
	return p.Close()
}
