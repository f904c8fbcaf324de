package boarddv1

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func answer() *ClaimJobsResponse {
	return &ClaimJobsResponse{Claims: []*Claim{{
		Uuid: "01a1fdc1-abe6-7946-80a6-2aaf4d1c66a3", Owner: "me", Token: "t", Generation: 1, Epoch: 1 << 40,
		Lease: durationpb.New(30 * time.Second), LeaseExpiresAt: timestamppb.New(time.Unix(1, 2)), Attempt: -1,
		Job: &Job{
			Name: "n", State: State_CLAIMED, Priority: Priority_VERY_LOW, Details: []byte(`{"a":[1,2]}`),
			Labels: map[string]string{"a": "b", "": "ü"}, Reasons: []string{"", "x"}, OperationPriority: -20,
		},
	}, {}}, Failures: []*ClaimFailure{{Uuid: "u", Error: &Error{Code: Code_LEASE_LOST, Retryable: true}}}}
}

// TestBinaryIsProtobuf writes with each codec what the other reads.
func TestBinaryIsProtobuf(t *testing.T) {
	t.Parallel()
	for _, m := range []proto.Message{answer(), &ClaimJobsResponse{}, &PostJobsRequest{Jobs: []*NewJob{{Details: []byte{}}}}, &NewJob{Details: []byte{}}, &WhoAmIResponse{}} {
		ours, err := Binary{}.MarshalAppend([]byte("before"), m)
		if err != nil {
			t.Fatal(err)
		}
		if string(ours[:6]) != "before" {
			t.Fatalf("what stood before is gone: %q", ours[:6])
		}
		back := m.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(ours[6:], back); err != nil || !proto.Equal(back, m) {
			t.Fatalf("protobuf reads %v, %v; want %v", back, err, m)
		}
		theirs, err := Binary{}.MarshalStable(m)
		if err != nil {
			t.Fatal(err)
		}
		into := answer().ProtoReflect().Interface() // what it held must go
		if into.ProtoReflect().Descriptor() != m.ProtoReflect().Descriptor() {
			into = back
		}
		if err := (Binary{}).Unmarshal(theirs, into); err != nil || !proto.Equal(into, m) {
			t.Fatalf("we read %v, %v; want %v", into, err, m)
		}
		clear(theirs) // it is Connect's, and used again
		if !proto.Equal(into, m) {
			t.Fatal("what was read changes with the memory that it was read from")
		}
	}
}

func TestBinaryRefuses(t *testing.T) {
	t.Parallel()
	if _, err := (Binary{}).Marshal("text"); err == nil {
		t.Error("a string was written as a message")
	}
	if err := (Binary{}).Unmarshal([]byte{0xff}, &Job{}); err == nil {
		t.Error("half a tag was read as a message")
	}
}

func BenchmarkBinary(b *testing.B) {
	m := answer()
	for range 5 {
		m.Claims = append(m.Claims, m.Claims...)
	}
	data, _ := Binary{}.Marshal(m)
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			data, _ = Binary{}.MarshalAppend(data[:0], m)
		}
	})
	b.Run("write-reflection", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			data, _ = proto.MarshalOptions{}.MarshalAppend(data[:0], m)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = Binary{}.Unmarshal(data, &ClaimJobsResponse{})
		}
	})
	b.Run("read-reflection", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = proto.Unmarshal(data, &ClaimJobsResponse{})
		}
	})
}
