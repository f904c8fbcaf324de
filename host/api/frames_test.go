package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/wirejson"
)

// TestFramesOfEveryForm reads the bytes of streams in each form: small events are as
// they are, large ones are compressed where the client takes that, and all say the same
// as the answer to a call.
func TestFramesOfEveryForm(t *testing.T) {
	t.Parallel()
	s := serve(t)
	labels := make([]string, 20)
	for i := range labels {
		labels[i] = fmt.Sprintf(`"label-%d":"%s"`, i, strings.Repeat("x", 60))
	}
	var before struct{ Cursor string }
	s.must(t, rootSecret, "ListEvents", `{"board":"default"}`, &before)
	s.must(t, rootSecret, "PostJobs", `{"board":"default","jobs":[{"name":"small"},{"name":"large","labels":{`+strings.Join(labels, ",")+`}}]}`, nil)
	var want boarddv1.ListEventsResponse
	for len(want.GetEvents()) < 2 { // the answer is what has come by then
		listed := s.must(t, rootSecret, "ListEvents", `{"board":"default","from":"`+before.Cursor+`","wait":"10s"}`, nil)
		if err := (wirejson.Codec{}).Unmarshal([]byte(listed), &want); err != nil {
			t.Fatalf("%v: %s", err, listed)
		}
	}
	for _, contentType := range []string{"application/connect+json", "application/connect+proto", "application/grpc-web+proto", "application/grpc-web+json", "application/grpc"} {
		for _, gzipped := range []bool{false, true} {
			t.Run(fmt.Sprint(contentType, " ", gzipped), func(t *testing.T) {
				t.Parallel()
				got := framesOf(t, s, contentType, gzipped, before.Cursor)
				for i, f := range got {
					if !proto.Equal(f.event, want.GetEvents()[i]) {
						t.Errorf("event %d is %v, want %v", i, f.event, want.GetEvents()[i])
					}
					if large := i == 1; f.compressed != (large && gzipped) {
						t.Errorf("event %d is compressed: %v", i, f.compressed)
					}
				}
			})
		}
	}
}

type readFrame struct {
	event      *boarddv1.Event
	compressed bool
}

// framesOf reads the first two events of a stream.
func framesOf(t *testing.T, s *server, contentType string, gzipped bool, from string) (frames []readFrame) {
	t.Helper()
	isJSON := strings.HasSuffix(contentType, "json")
	ask := &boarddv1.WatchBoardRequest{Board: "default", From: from}
	body, err := proto.Marshal(ask)
	if isJSON {
		body, err = wirejson.Codec{}.Marshal(ask)
	}
	if err != nil {
		t.Fatal(err)
	}
	body = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/boardd.v1.BoardService/WatchBoard", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Authorization", "Bearer "+rootSecret)
	if gzipped {
		r.Header.Set("Connect-Accept-Encoding", "gzip")
		r.Header.Set("Grpc-Accept-Encoding", "gzip")
	}
	client := s.client
	if contentType == "application/grpc" {
		client = cleartext2(t)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	for range 2 {
		head := make([]byte, 5)
		if _, err := io.ReadFull(answer.Body, head); err != nil {
			t.Fatal(err)
		}
		message := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(answer.Body, message); err != nil {
			t.Fatal(err)
		}
		if head[0] == 1 {
			z, err := gzip.NewReader(bytes.NewReader(message))
			if err != nil {
				t.Fatal(err)
			}
			if message, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		e := &boarddv1.Event{}
		if isJSON {
			err = wirejson.Codec{}.Unmarshal(message, e)
		} else {
			err = proto.Unmarshal(message, e)
		}
		if err != nil || head[0] > 1 {
			t.Fatalf("flags %d, %v: %s", head[0], err, message)
		}
		frames = append(frames, readFrame{e, head[0] == 1})
	}
	return frames
}
