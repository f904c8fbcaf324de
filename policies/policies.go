// Package policies has the policies that boardd brings along. They are written
// against the guest SDK like anybody's, one folder each, and compiled in: they run
// natively, without WebAssembly. The folder module in each of them is the same
// policy as a module.
package policies

import (
	"maps"
	"slices"
	"strings"

	"github.com/boardd/boardd/policies/aging"
	"github.com/boardd/boardd/policies/deadline"
	"github.com/boardd/boardd/policies/fairshare"
	"github.com/boardd/boardd/policies/labels"
	"github.com/boardd/boardd/policies/limit"
	"github.com/boardd/boardd/policies/rate"
	"github.com/boardd/boardd/policies/retryfirst"
	"github.com/boardd/boardd/policies/windows"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/block"
	"github.com/boardd/boardd/sdk/policy/guest"
	"github.com/boardd/boardd/sdk/policy/native"
)

type builtin struct {
	manifest []byte
	make     func() *guest.Policy
}

var builtins = map[string]builtin{
	"aging":       {aging.Manifest, aging.New},
	"deadline":    {deadline.Manifest, deadline.New},
	"fair-share":  {fairshare.Manifest, fairshare.New},
	"labels":      {labels.Manifest, labels.New},
	"limit":       {limit.Manifest, limit.New},
	"rate":        {rate.Manifest, rate.New},
	"retry-first": {retryfirst.Manifest, retryfirst.New},
	"windows":     {windows.Manifest, windows.New},
}

// Names returns the names that New knows, sorted.
func Names() []string { return slices.Sorted(maps.Keys(builtins)) }

// New returns a policy by its name, with its parameters set.
func New(name string, set map[string]any) (*block.Rule, error) {
	b, ok := builtins[name]
	if ok {
		return native.New(b.manifest, set, b.make())
	}
	if near := nearest.Name(name, Names()); near != "" {
		return nil, job.Errorf(job.Invalid, "no policy is called %q; did you mean %q?", name, near)
	}
	return nil, job.Errorf(job.Invalid, "no policy is called %q: boardd brings %s", name, strings.Join(Names(), ", "))
}

// Declared returns what a policy declares, by its name.
func Declared(name string) (*policy.Declared, bool) {
	b, ok := builtins[name]
	if !ok {
		return nil, false
	}
	d, err := policy.ParseManifest(b.manifest)
	return d, err == nil
}
