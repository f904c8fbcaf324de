package api_test

import (
	"fmt"
	"testing"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
	"github.com/boardd/boardd/sdk/wirejson"
)

func BenchmarkCalls(b *testing.B) {
	s := serve(b)
	for _, c := range []struct {
		name    string
		options []connect.ClientOption
	}{
		{"binary", nil},
		{"json", []connect.ClientOption{connect.WithCodec(wirejson.Codec{Lenient: true})}},
	} {
		client := boarddv1connect.NewBoardServiceClient(s.client, s.url, append(c.options, connect.WithInterceptors(bearer(rootSecret)))...)
		b.Run("WhoAmI/"+c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := client.WhoAmI(b.Context(), connect.NewRequest(&boarddv1.WhoAmIRequest{})); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("GetBoard/"+c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := client.GetBoard(b.Context(), connect.NewRequest(&boarddv1.GetBoardRequest{Board: "default"})); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("PostJobs32/"+c.name, func(b *testing.B) {
			request := &boarddv1.PostJobsRequest{Board: "default"}
			for i := range 32 {
				request.Jobs = append(request.Jobs, &boarddv1.NewJob{
					Name: fmt.Sprint("job-", i), Details: []byte(`{"path":"/a.png","width":640,"height":480}`), Labels: map[string]string{"customer": "acme"},
				})
			}
			for b.Loop() {
				if _, err := client.PostJobs(b.Context(), connect.NewRequest(request)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/32, "ns/job")
		})
	}
}
