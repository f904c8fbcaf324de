package wirejson_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/wirejson"
)

func posting(n int) *boarddv1.PostJobsRequest {
	m := &boarddv1.PostJobsRequest{Board: "default"}
	for i := range n {
		m.Jobs = append(m.Jobs, &boarddv1.NewJob{
			Name: fmt.Sprint("resize-", i), Details: []byte(`{"path":"/a.png","width":640,"height":480,"tags":["a","b"]}`),
			Labels: map[string]string{"customer": "acme", "region": "eu"},
		})
	}
	return m
}

func answer(n int) *boarddv1.PostJobsResponse {
	m := &boarddv1.PostJobsResponse{}
	now := timestamppb.New(time.Unix(1_800_000_000, 123456789))
	for i := range n {
		m.Results = append(m.Results, &boarddv1.JobResult{Job: &boarddv1.Job{
			Uuid: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), Name: fmt.Sprint("resize-", i), State: boarddv1.State_UNCLAIMED,
			Priority: boarddv1.Priority_NORMAL, Details: []byte(`{"path":"/a.png","width":640,"height":480,"tags":["a","b"]}`),
			Labels: map[string]string{"customer": "acme", "region": "eu"}, Sequence: int64(i), CreatedAt: now, ModifiedAt: now,
		}})
	}
	return m
}

func BenchmarkMarshal32(b *testing.B) {
	m := answer(32)
	b.Run("wirejson", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			var err error
			if buf, err = wirejson.MarshalAppend(buf[:0], m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("protojson", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			var err error
			if buf, err = (protojson.MarshalOptions{EmitDefaultValues: true}).MarshalAppend(buf[:0], m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkUnmarshal32(b *testing.B) {
	m := posting(32)
	run := func(name string, marshal func(proto.Message) ([]byte, error), unmarshal func([]byte, proto.Message) error) {
		b.Run(name, func(b *testing.B) {
			text, err := marshal(m)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := unmarshal(text, &boarddv1.PostJobsRequest{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("wirejson", wirejson.Marshal, wirejson.Unmarshal)
	run("protojson", protojson.Marshal, protojson.Unmarshal)
}
