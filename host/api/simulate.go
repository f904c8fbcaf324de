package api

import (
	"context"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/replay"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// SimulatePolicy goes through a board's recording with a policy.
func (a *adminService) SimulatePolicy(ctx context.Context, r *connect.Request[boarddv1.SimulatePolicyRequest]) (*connect.Response[boarddv1.SimulatePolicyResponse], error) {
	session, p, err := a.promoting(ctx, "SimulatePolicy", r.Msg, r.Msg.GetParams())
	if err != nil {
		return nil, err
	}
	p.OnError = r.Msg.GetOnError()
	o := replay.Options{By: r.Msg.GetBy()}
	if o.StarvedAfter, err = fromDuration("starvedAfter", r.Msg.GetStarvedAfter(), time.Millisecond); err != nil {
		return nil, session.Unless("SimulatePolicy", err)
	}
	if o.From, err = fromTime("from", r.Msg.GetFrom(), r.Msg.From != nil); err != nil {
		return nil, session.Unless("SimulatePolicy", err)
	}
	s, err := session.Simulate(ctx, p, o)
	if err != nil {
		return nil, err
	}
	return answer(SimulationMessage(s))
}

// SimulationMessage is a simulation as the API has it: boardd policy simulate shows
// one that it made itself in the same way.
func SimulationMessage(s *admin.Simulation) *boarddv1.SimulatePolicyResponse {
	response := &boarddv1.SimulatePolicyResponse{
		From: toTime(s.From), Until: toTime(s.Until), Gaps: int64(s.Gaps), Jobs: int64(s.Jobs), Claims: int64(s.Claims), Unasked: int64(s.Unasked),
		AsRecorded: int64(s.AsRecorded), Differ: int64(s.Differ), Earlier: int64(s.Earlier), Later: int64(s.Later), LargestShift: int64(s.LargestShift),
		By: s.By, StarvedAfter: toDuration(s.StarvedAfter), Missing: s.NotRecorded(),
		Present: toSide(&s.Report.Present), Candidate: toSide(&s.Report.Candidate),
	}
	response.Present.Policies, response.Candidate.Policies = s.Present, s.Candidate
	for i := range s.Keys {
		k := &s.Keys[i]
		response.Keys = append(response.Keys, &boarddv1.SimulatedKey{Key: k.Key, Jobs: int64(k.Jobs), Present: toSide(&k.Present), Candidate: toSide(&k.Candidate)})
	}
	for _, j := range s.Starved {
		response.Starved = append(response.Starved, &boarddv1.StarvedJob{Uuid: j.ID.String(), Key: j.Key, Wait: toDuration(j.Wait), Claimed: j.Claimed})
	}
	return response
}

func toSide(s *replay.Side) *boarddv1.SimulatedSide {
	return &boarddv1.SimulatedSide{
		Claimed: int64(s.Claimed), Empty: int64(s.Empty), Left: int64(s.Left), Starved: int64(s.Starved), Errors: s.Errors,
		WaitP50: toDuration(s.WaitP50), WaitP99: toDuration(s.WaitP99), WaitMost: toDuration(s.WaitMost),
	}
}
