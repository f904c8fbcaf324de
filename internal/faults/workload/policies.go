package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// policyName is the name under which the load keeps its policy.
const policyName = "teams"

// Server is a connection to one server alone.
type Server struct {
	Name   string
	Client *client.Client
}

// deployer is the one client that changes which policy the board asks.
type deployer struct {
	*Load
	module  []byte
	servers []Server
	random  *rand.Rand

	serial int64 // of the last promotion
	shown  int64 // the one in force, by the last answer
	put    bool  // the tenant has the policy, as far as is known
	given  bool  // the board asks it, as far as is known
}

// Deploy has one client promote a policy on the board, each time with other parameters,
// roll it back, take it away and put it again, each time through one of the servers, until
// ctx ends. Rest goes on with it.
func (l *Load) Deploy(ctx context.Context, module []byte, servers []Server) {
	l.deployer = &deployer{Load: l, module: module, servers: servers, random: rand.New(rand.NewPCG(l.Seed, 0xdeb107))} //nolint:gosec // a run that can be made again
	for ctx.Err() == nil {
		l.deployer.step(context.WithoutCancel(ctx), servers[l.deployer.random.IntN(len(servers))])
		_ = sleep.For(ctx, time.Duration(l.deployer.random.Int64N(int64(10*l.Pause)))) // the end of ctx is seen by the next turn
	}
}

func (d *deployer) step(ctx context.Context, s Server) {
	switch roll := d.random.IntN(10); {
	case !d.put:
		d.putPolicy(ctx, s)
	case roll == 0:
		d.shadow(ctx, s)
	case roll < 4:
		d.rollback(ctx, s)
	case roll < 6 && !d.given:
		d.deletePolicy(ctx, s)
	default:
		d.promote(ctx, s)
	}
}

// calls makes a call and writes it down.
func (d *deployer) calls(s Server, c history.PolicyCall, do func(a *client.Admin, c *history.PolicyCall) error) history.Outcome {
	from := d.Recorder.Now()
	c.Client, c.Board, c.Server = "deployer", d.Board, s.Name
	var op history.Op
	answer(&op, do(s.Client.Admin(), &c))
	c.Outcome, c.Kind, c.Text = op.Outcome, op.Kind, op.Text
	d.shown = c.Shown
	d.Recorder.AddPolicyCall(from, c)
	return c.Outcome
}

func (d *deployer) putPolicy(ctx context.Context, s Server) {
	done := d.calls(s, history.PolicyCall{Call: history.PutPolicy}, func(a *client.Admin, _ *history.PolicyCall) error {
		_, err := a.PutPolicy(ctx, &boarddv1.PutPolicyRequest{Name: policyName, Module: d.module})
		return err
	})
	d.put = done == history.Done
}

func (d *deployer) deletePolicy(ctx context.Context, s Server) {
	done := d.calls(s, history.PolicyCall{Call: history.DeletePolicy}, func(a *client.Admin, _ *history.PolicyCall) error {
		_, err := a.DeletePolicy(ctx, &boarddv1.DeletePolicyRequest{Name: policyName})
		return err
	})
	d.put = done == history.Refused
}

func (d *deployer) promote(ctx context.Context, s Server) history.Outcome {
	d.serial++
	rule := history.Rule{Serial: d.serial, Kept: append(teams, "")[d.random.IntN(len(teams)+1)], Reversed: d.random.IntN(2) == 0}
	done := d.calls(s, history.PolicyCall{Call: history.Promote, Rule: rule}, func(a *client.Admin, c *history.PolicyCall) error {
		r, err := a.PromotePolicy(ctx, &boarddv1.PromotePolicyRequest{Board: d.Board, Name: policyName, Params: paramsOf(rule)})
		c.Shown = serialOf(r.GetPolicies())
		return err
	})
	d.given = d.given || done != history.Refused
	if done == history.Refused {
		d.put = false // another call that went wrong may have taken it away
	}
	return done
}

func (d *deployer) rollback(ctx context.Context, s Server) history.Outcome {
	return d.calls(s, history.PolicyCall{Call: history.Rollback}, func(a *client.Admin, c *history.PolicyCall) error {
		r, err := a.RollbackPolicy(ctx, &boarddv1.RollbackPolicyRequest{Board: d.Board, Name: policyName})
		c.Shown = serialOf(r.GetPolicies())
		if err == nil || job.KindOf(err) == job.NotFound {
			d.given = c.Shown != 0
		}
		return err
	})
}

// shadow has the board ask the policy beside what decides, or stop that. It changes
// nothing that anybody is told.
func (d *deployer) shadow(ctx context.Context, s Server) {
	d.calls(s, history.PolicyCall{Call: history.Shadow}, func(a *client.Admin, _ *history.PolicyCall) error {
		_, err := a.ShadowPolicy(ctx, &boarddv1.ShadowPolicyRequest{
			Board: d.Board, Name: policyName, Params: paramsOf(history.Rule{Kept: teams[0]}), Stop: d.random.IntN(2) == 0,
		})
		return err
	})
}

func paramsOf(r history.Rule) []byte {
	return fmt.Appendf(nil, `{"serial":%d,"kept":%q,"reversed":%t}`, r.Serial, r.Kept, r.Reversed)
}

// serialOf is the number of the promotion that a board goes by; 0: of none.
func serialOf(all []*boarddv1.BoardPolicy) (serial int64) {
	for _, p := range all {
		_, _ = fmt.Sscanf(string(p.GetParams()), `{"serial":%d`, &serial) // as paramsOf wrote it
	}
	return serial
}

// Probe asks one server again and again by which rule it goes, until ctx ends.
func (l *Load) Probe(ctx context.Context, s Server) {
	random := rand.New(rand.NewPCG(l.Seed, 0x9c0be)) //nolint:gosec // a run that can be made again
	for sleep.For(ctx, time.Duration(random.Int64N(int64(4*l.Pause)))) == nil {
		for _, k := range l.some(random, 1) {
			_, _ = l.explain(context.WithoutCancel(ctx), s, k.posting.GetUuid(), false) // what it does not say is not judged
		}
	}
}

var errUntold = errors.New("the job says nothing of the rule")

// explain asks a server about a job that is open, and keeps what that says of the rule.
func (l *Load) explain(ctx context.Context, s Server, id string, final bool) (serial int64, err error) {
	from := l.Recorder.Now()
	x, err := s.Client.Board(l.Board).Explain(ctx, id, "", map[string]string{teamLabel: history.Everybody})
	if err != nil {
		return 0, err
	}
	switch {
	case x.GetVerdict() != "CLAIMABLE":
		return 0, errUntold
	case x.GetPolicy() != "":
		if serial, err = strconv.ParseInt(x.GetReason(), 10, 64); err != nil {
			return 0, errUntold // the policy could not be asked
		}
	}
	l.Recorder.AddPolicyCall(from, history.PolicyCall{
		Client: "prober", Call: history.Explain, Board: l.Board, Server: s.Name, Outcome: history.Done, Shown: serial, Final: final,
	})
	return serial, nil
}

// deployed makes a last change and waits until every server goes by it, or the patience
// is over.
func (r *resting) deployed(ctx context.Context) error {
	d := r.deployer
	if err := r.until(ctx, func() (bool, error) {
		s := Server{r.names[0], r.clients[r.names[0]]}
		if d.given && d.random.IntN(2) == 0 {
			return d.rollback(ctx, s) == history.Done, nil
		}
		if !d.put {
			d.putPolicy(ctx, s)
		}
		return d.promote(ctx, s) == history.Done, nil
	}); err != nil {
		return err
	}
	last := d.shown
	open, err := r.anyOpen(ctx)
	if err != nil || open == "" {
		return err
	}
	for _, name := range r.names {
		s := Server{name, r.clients[name]}
		if err := r.until(ctx, func() (bool, error) {
			serial, err := r.explain(ctx, s, open, false)
			return err == nil && serial == last, nil
		}); err != nil {
			return err
		}
		_, _ = r.explain(ctx, s, open, true) // what it does not say is not judged
	}
	return nil
}

// anyOpen returns a job that can be claimed; empty: there is none.
func (r *resting) anyOpen(ctx context.Context) (id string, err error) {
	err = r.until(ctx, func() (bool, error) {
		id = ""
		for j, err := range r.first().List(ctx, client.ListOptions{States: []boarddv1.State_Enum{boarddv1.State_UNCLAIMED}}) {
			if err != nil {
				return false, err
			}
			id = j.GetUuid()
			break
		}
		return true, nil
	})
	return id, err
}
