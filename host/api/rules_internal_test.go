package api

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// wrongText is a request with one text that is not UTF-8, at each depth.
func wrongTexts() map[string]proto.Message {
	const wrong = "a\xff"
	return map[string]proto.Message{
		"board":     &boarddv1.PostJobsRequest{Board: wrong},
		"name":      &boarddv1.PostJobsRequest{Jobs: []*boarddv1.NewJob{{}, {Name: wrong}}},
		"label":     &boarddv1.PostJobsRequest{Jobs: []*boarddv1.NewJob{{Labels: map[string]string{"a": "b", "c": wrong}}}},
		"label key": &boarddv1.PostJobsRequest{Jobs: []*boarddv1.NewJob{{Labels: map[string]string{wrong: "b"}}}},
		"list":      &boarddv1.ClaimJobsRequest{Names: []string{"a", wrong}},
	}
}

func TestBinaryTextIsUTF8(t *testing.T) {
	t.Parallel()
	for name, m := range wrongTexts() {
		data, err := boarddv1.Binary{}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if rulesOf(m.ProtoReflect().Descriptor()).check(data) == nil {
			t.Errorf("%s: text that is not UTF-8 was not noticed", name)
		}
	}
	right := &boarddv1.PostJobsRequest{Board: "ü", Jobs: []*boarddv1.NewJob{{
		Name: "日本", Labels: map[string]string{"ключ": "значение"}, Details: []byte("{\xff"), // bytes may be anything
	}}}
	data, err := boarddv1.Binary{}.Marshal(right)
	if err != nil {
		t.Fatal(err)
	}
	if err := rulesOf(right.ProtoReflect().Descriptor()).check(data); err != nil {
		t.Errorf("a right request was refused: %v", err)
	}
}

// FuzzBinaryRequest: what is taken for a request, protobuf's own reader takes for
// the same one; and what protobuf has written is taken.
func FuzzBinaryRequest(f *testing.F) {
	for _, m := range wrongTexts() {
		data, _ := boarddv1.Binary{}.Marshal(m)
		f.Add(data)
	}
	data, _ := boarddv1.Binary{}.Marshal(&boarddv1.PostJobsRequest{Board: "b", Jobs: []*boarddv1.NewJob{{
		Name: "n", Labels: map[string]string{"a": "b"}, Details: []byte(`{"a":1}`), After: []*boarddv1.Prerequisite{{Uuid: "u"}},
	}}})
	f.Add(data)
	f.Add(protowire.AppendTag(nil, 1, protowire.VarintType))
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, theirs := new(boarddv1.PostJobsRequest), new(boarddv1.PostJobsRequest)
		if err := (codec{"proto"}).Unmarshal(data, ours); err != nil {
			t.Fatal(err)
		}
		err := proto.Unmarshal(data, theirs)
		switch refused := mistake(ours) != nil; {
		case !refused && err != nil:
			t.Fatalf("%x was taken, and protobuf says %v", data, err)
		case !refused && !proto.Equal(known(t, ours), known(t, theirs)):
			t.Fatalf("%x was read as %v, and is %v", data, ours, theirs)
		case refused && err == nil:
			// Protobuf puts a field of the wrong kind by as unknown: it is a mistake.
			written, _ := proto.Marshal(known(t, theirs))
			if again := new(boarddv1.PostJobsRequest); (codec{"proto"}).Unmarshal(written, again) == nil && mistake(again) != nil {
				t.Fatalf("%x was refused, which protobuf has written", written)
			}
		}
	})
}

// known returns a message without the fields that nobody knows.
func known(t *testing.T, m *boarddv1.PostJobsRequest) *boarddv1.PostJobsRequest {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	bare := new(boarddv1.PostJobsRequest)
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, bare); err != nil {
		t.Fatal(err)
	}
	return bare
}
