// Package native runs a policy that is written against package guest in this
// process, without WebAssembly: boardd's own policies, and everybody's in their
// tests. It sees the same blocks as the module would, so what it is not to see it
// does not see here either; nothing limits what it does.
package native

import (
	"context"
	"fmt"
	"sync"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/abi"
	"github.com/boardd/boardd/sdk/policy/block"
	"github.com/boardd/boardd/sdk/policy/guest"
)

// New returns a policy from a manifest in JSON and the parameters that an
// operator set, by name. The guest is configured with them, so each rule has one
// of its own.
func New(manifest []byte, set map[string]any, p *guest.Policy) (*block.Rule, error) {
	m, values, form, err := configured(manifest, set)
	if err != nil {
		return nil, err
	}
	if guest.Handle(p, form, abi.Configure) != abi.OK {
		return nil, job.Errorf(job.Invalid, "the policy %s refused its parameters: %s", m.Name, block.Text(form))
	}
	return block.New(m, values, &machine{policy: p})
}

// configured returns a manifest with its parameters, and the block that tells the
// policy of them.
func configured(manifest []byte, set map[string]any) (m policy.Manifest, values []policy.Value, form []byte, err error) {
	declared, err := policy.ParseManifest(manifest)
	if err != nil {
		return m, nil, nil, err
	}
	if m, values, err = declared.Bind(set); err != nil {
		return m, nil, nil, err
	}
	form, err = block.Form(&m, values)
	return m, values, form, err
}

// machine has a room for each goroutine that asks at the same time. The policy
// itself is shared: after Configure nobody may write to it.
type machine struct {
	policy *guest.Policy
	seats  sync.Pool
}

type seat struct {
	*machine
	room []byte
}

func (m *machine) Borrow(context.Context) (block.Seat, error) {
	if s, ok := m.seats.Get().(*seat); ok {
		return s, nil
	}
	return &seat{machine: m, room: make([]byte, abi.MaxBlock)}, nil
}

func (m *machine) Close() error { return nil }

func (s *seat) Room() []byte { return s.room }

func (s *seat) Call(_ context.Context, call abi.Call, total int) error {
	if guest.Handle(s.policy, s.room[:total], call) != abi.OK {
		return fmt.Errorf("the policy failed: %s", block.Text(s.room))
	}
	return nil
}

func (s *seat) Return(bool) { s.seats.Put(s) }
