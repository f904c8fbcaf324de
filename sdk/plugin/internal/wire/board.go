package wire

import (
	"math"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// InfoTo returns what a driver says of itself; this side takes Exec.
func InfoTo(info driver.Info) *pb.InfoResponse {
	return &pb.InfoResponse{
		Name: info.Name, Version: info.Version, Summary: info.Summary,
		Config: schemaTo(info.Config), Board: schemaTo(info.Board), ExecStream: true, Logbooks: info.Logbooks, OneHost: info.OneHost, Wakes: info.Wakes,
	}
}

// InfoFrom reads what a driver says of itself.
func InfoFrom(m *pb.InfoResponse) (driver.Info, error) {
	var r reader
	info := driver.Info{
		Name: m.Name, Version: m.Version, Summary: m.Summary,
		Config: r.schema(m.Config), Board: r.schema(m.Board), Logbooks: m.Logbooks, OneHost: m.OneHost, Wakes: m.Wakes,
	}
	return info, r.err
}

func schemaTo(s driver.Schema) *pb.Schema {
	m := &pb.Schema{Fields: fieldsTo(s.Fields)}
	for _, group := range s.OneOf {
		m.OneOf = append(m.OneOf, &pb.Names{Names: group})
	}
	return m
}

func fieldsTo(fields []driver.Field) []*pb.Field {
	var out []*pb.Field
	for _, f := range fields {
		out = append(out, &pb.Field{
			Name: f.Name, Type: string(f.Type), Doc: f.Doc, Required: f.Required, Secret: f.Secret,
			Values: f.Values, Fields: fieldsTo(f.Fields),
		})
	}
	return out
}

func (r *reader) schema(m *pb.Schema) driver.Schema {
	if m == nil {
		return driver.Schema{}
	}
	s := driver.Schema{Fields: r.fields(m.Fields, 0)}
	for _, group := range m.OneOf {
		s.OneOf = append(s.OneOf, group.Names)
	}
	return s
}

func (r *reader) fields(list []*pb.Field, depth int) []driver.Field {
	if depth > 16 {
		r.fail("the settings are nested more than 16 deep")
		return nil
	}
	var out []driver.Field
	for _, f := range list {
		out = append(out, driver.Field{
			Name: f.Name, Type: driver.FieldType(f.Type), Doc: f.Doc, Required: f.Required, Secret: f.Secret,
			Values: f.Values, Fields: r.fields(f.Fields, depth+1),
		})
	}
	return out
}

// SpecTo returns a board's specification.
func SpecTo(s driver.BoardSpec) *pb.BoardSpec {
	return &pb.BoardSpec{
		Name: s.Name, Settings: s.Settings, Window: int64(s.Window), MaxTombstones: s.MaxTombstones,
		MaxFinals: s.MaxFinals, MaxFinalBytes: s.MaxFinalBytes, Observe: s.Observe, Memory: s.Witness, Seen: uint64(s.Seen),
	}
}

// SpecFrom reads a board's specification.
func SpecFrom(m *pb.BoardSpec) (driver.BoardSpec, error) {
	var r reader
	spec := driver.BoardSpec{
		Name: m.Name, Settings: m.Settings, Window: time.Duration(r.amount(m.Window, "window")),
		MaxTombstones: r.amount(m.MaxTombstones, "max_tombstones"), MaxFinals: r.amount(m.MaxFinals, "max_finals"),
		MaxFinalBytes: r.amount(m.MaxFinalBytes, "max_final_bytes"), Observe: m.Observe, Witness: m.Memory, Seen: driver.Position(m.Seen),
	}
	return spec, r.err
}

// StatusTo returns a board's status.
func StatusTo(s driver.BoardStatus) *pb.BoardStatus {
	c := s.Capabilities
	return &pb.BoardStatus{
		Generation: s.Generation, Position: uint64(s.Position), Durability: string(s.Durability), Window: int64(s.Window),
		MaxFinals: s.MaxFinals, Memory: s.Witness, Loss: s.Loss, Capabilities: &pb.Capabilities{
			Encodings: c.Encodings, MaxDetails: int64(c.MaxDetails), MaxRecord: int64(c.MaxRecord), MaxBatch: int64(c.MaxBatch),
			InFlight: int64(c.InFlight), MaxCandidates: int64(c.MaxCandidates), MaxJobs: c.MaxJobs, Limits: c.Limits,
			Attachments: c.Attachments, Shared: c.Shared, ByteExact: c.ByteExact, AnswersClose: c.AnswersClose, Timeouts: c.Timeouts, Keys: c.Keys, Replaces: c.Replaces, Imports: c.Imports, Groups: c.Groups, Rates: c.Rates, Inbox: c.Inbox, Moves: c.Moves, Empties: c.Empties, Alone: c.Alone, Endings: c.Endings,
		},
	}
}

// StatusFrom reads a board's status.
func StatusFrom(m *pb.BoardStatus) (driver.BoardStatus, error) {
	var r reader
	s := driver.BoardStatus{
		Generation: m.Generation, Position: driver.Position(m.Position), Durability: driver.Durability(m.Durability),
		Window: time.Duration(r.amount(m.Window, "window")), Witness: m.Memory, Loss: m.Loss,
		MaxFinals: r.amount(m.MaxFinals, "max_finals"),
	}
	if s.Generation == 0 {
		r.fail("generation is 0, want at least 1")
	}
	if c := m.Capabilities; c != nil {
		s.Capabilities = driver.Capabilities{
			Encodings: c.Encodings, MaxDetails: r.small(c.MaxDetails, "max_details"), MaxRecord: r.small(c.MaxRecord, "max_record"),
			MaxBatch: r.small(c.MaxBatch, "max_batch"), InFlight: r.small(c.InFlight, "in_flight"),
			MaxCandidates: r.small(c.MaxCandidates, "max_candidates"), MaxJobs: r.amount(c.MaxJobs, "max_jobs"), Limits: c.Limits,
			Attachments: c.Attachments, Shared: c.Shared, ByteExact: c.ByteExact, AnswersClose: c.AnswersClose, Timeouts: c.Timeouts, Keys: c.Keys, Replaces: c.Replaces, Imports: c.Imports, Groups: c.Groups, Rates: c.Rates, Inbox: c.Inbox, Moves: c.Moves, Empties: c.Empties, Alone: c.Alone, Endings: c.Endings,
		}
	}
	return s, r.err
}

func (r *reader) small(n int64, what string) int {
	if n < 0 || n > math.MaxInt32 {
		r.fail("%s is %d, want 0 to %d", what, n, math.MaxInt32)
		return 0
	}
	return int(n)
}

// MoveTo returns a step of a move.
func MoveTo(board string, m driver.Move) *pb.MoveBoardRequest {
	return &pb.MoveBoardRequest{Board: board, Step: pb.MoveStep(m.Step), Id: nonceBytes(&m.ID), Generation: m.Generation, Position: uint64(m.Position), Shared: m.Shared}
}

// MoveFrom reads a step of a move.
func MoveFrom(m *pb.MoveBoardRequest) (driver.Move, error) {
	var r reader
	move := driver.Move{
		Step: driver.MoveStep(r.enum(int32(m.Step), int(driver.Empty), "the step of a move")),
		ID:   r.bytes16(m.Id, "a move's id"), Generation: m.Generation, Position: driver.Position(m.Position),
		Shared: m.Shared,
	}
	return move, r.err
}

// CountsTo returns a board's counts.
func CountsTo(c driver.Counts) *pb.Counts {
	return &pb.Counts{
		Open: c.Open, Claimed: c.Claimed, Trashed: c.Trashed, Ended: c.Ended, Tombstones: c.Tombstones, Bad: c.Bad, Limits: c.Limits,
		Finals: c.Finals, FinalBytes: c.FinalBytes,
	}
}

// CountsFrom reads a board's counts.
func CountsFrom(m *pb.Counts) (driver.Counts, error) {
	var r reader
	c := driver.Counts{
		Open: r.amount(m.Open, "open"), Claimed: r.amount(m.Claimed, "claimed"), Trashed: r.amount(m.Trashed, "trashed"),
		Ended: r.amount(m.Ended, "ended"), Tombstones: r.amount(m.Tombstones, "tombstones"), Bad: r.amount(m.Bad, "bad"), Limits: m.Limits,
		Finals: r.amount(m.Finals, "finals"), FinalBytes: r.amount(m.FinalBytes, "final_bytes"),
	}
	return c, r.err
}
