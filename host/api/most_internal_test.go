package api

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// requestMessages are the requests of every call of both services.
func requestMessages(t testing.TB) []proto.Message {
	t.Helper()
	var all []proto.Message
	for _, methods := range []protoreflect.MethodDescriptors{boardMethods(), adminMethods()} {
		for i := range methods.Len() {
			kind, err := protoregistry.GlobalTypes.FindMessageByName(methods.Get(i).Input().FullName())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, kind.New().Interface())
		}
	}
	return all
}

// listIn is one list or map that a request can hold, and the fields on the way to it.
type listIn struct {
	way  []protoreflect.FieldDescriptor
	list protoreflect.FieldDescriptor
}

// listsOf finds every list of a message, in any depth.
func listsOf(d protoreflect.MessageDescriptor, way []protoreflect.FieldDescriptor) []listIn {
	var found []listIn
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if f.IsList() || f.IsMap() {
			found = append(found, listIn{append([]protoreflect.FieldDescriptor(nil), way...), f})
		}
		if f.Kind() == protoreflect.MessageKind && !f.IsMap() && f.Message().FullName().Parent() != "google.protobuf" {
			found = append(found, listsOf(f.Message(), append(slices.Clip(way), f))...)
		}
	}
	return found
}

// path is how an error names the list.
func (l listIn) path() string {
	path := ""
	for _, f := range l.way {
		path += f.JSONName()
		if f.IsList() {
			path += "[0]"
		}
		path += "."
	}
	return path + l.list.JSONName()
}

// binary is a request whose list has n items, and ends in the middle of what follows.
func (l listIn) binary(n int) []byte {
	var data []byte
	for i := range n {
		switch f := l.list; {
		case f.IsMap():
			entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), strconv.Itoa(i))
			data = protowire.AppendBytes(protowire.AppendTag(data, f.Number(), protowire.BytesType), entry)
		case f.Kind() == protoreflect.EnumKind:
			data = protowire.AppendVarint(protowire.AppendTag(data, f.Number(), protowire.VarintType), 1)
		default:
			data = protowire.AppendBytes(protowire.AppendTag(data, f.Number(), protowire.BytesType), nil)
		}
	}
	for i := range l.way {
		f := l.way[len(l.way)-1-i]
		data = protowire.AppendBytes(protowire.AppendTag(nil, f.Number(), protowire.BytesType), data)
	}
	return data
}

// json is the same in JSON.
func (l listIn) json(n int) string {
	items := make([]string, n)
	for i := range items {
		switch f := l.list; {
		case f.IsMap() && f.MapValue().Kind() == protoreflect.StringKind:
			items[i] = fmt.Sprintf(`"%d":""`, i)
		case f.IsMap():
			items[i] = fmt.Sprintf(`"%d":0`, i)
		case f.Kind() == protoreflect.EnumKind:
			items[i] = strconv.Quote(string(f.Enum().Values().Get(1).Name()))
		case f.Kind() == protoreflect.MessageKind:
			items[i] = "{}"
		default:
			items[i] = `""`
		}
	}
	text := "[" + strings.Join(items, ",") + "]"
	if l.list.IsMap() {
		text = "{" + strings.Join(items, ",") + "}"
	}
	text = fmt.Sprintf(`"%s":%s`, l.list.JSONName(), text)
	for i := range l.way {
		f := l.way[len(l.way)-1-i]
		if text = "{" + text + "}"; f.IsList() {
			text = "[" + text + "]"
		}
		text = fmt.Sprintf(`"%s":%s`, f.JSONName(), text)
	}
	return "{" + text + "}"
}

// read reads a request, and returns the words of what is wrong with it.
func read(t testing.TB, name string, data []byte, m proto.Message) string {
	t.Helper()
	if err := (codec{name}).Unmarshal(data, m); err != nil {
		t.Fatal(err)
	}
	if err := mistake(m); err != nil {
		return err.Error()
	}
	return ""
}

// TestEveryListHasAnEnd has each list of each request at its limit and past it, in
// both forms. Past it the request goes on with what is no request, which nobody sees
// any more.
func TestEveryListHasAnEnd(t *testing.T) {
	t.Parallel()
	lists := 0
	for _, m := range requestMessages(t) {
		for _, l := range listsOf(m.ProtoReflect().Descriptor(), nil) {
			if only, _ := proto.GetExtension(l.list.Options(), boarddv1.E_Only).(bool); only {
				continue // the JSON form has no such field
			}
			lists++
			most, where := boarddv1.Most(l.list), string(m.ProtoReflect().Descriptor().Name())+"."+l.path()
			wrong := fmt.Sprintf("%s: want at most %d items", l.path(), most)
			if got := read(t, "proto", l.binary(most), m); got != "" {
				t.Errorf("%s: binary at the limit: %s", where, got)
			}
			if got := read(t, "proto", l.binary(most+1), m); got != wrong {
				t.Errorf("%s: binary past the limit: %q, want %q", where, got, wrong)
			}
			if got := read(t, "json", []byte(l.json(most)), m); got != "" {
				t.Errorf("%s: JSON at the limit: %s", where, got)
			}
			text := strings.TrimRight(l.json(most+1), "]}") + ", and so on"
			if got := read(t, "json", []byte(text), m); got != wrong {
				t.Errorf("%s: JSON past the limit: %q, want %q", where, got, wrong)
			}
		}
	}
	if lists < 30 {
		t.Errorf("there are only %d lists", lists)
	}
}

// TestListsTogetherHaveAnEnd: no list is too long, but all of them are.
func TestListsTogetherHaveAnEnd(t *testing.T) {
	t.Parallel()
	labels, pairs := &boarddv1.NewJob{Labels: map[string]string{}}, make([]string, 100)
	for i := range pairs {
		labels.Labels[strconv.Itoa(i)], pairs[i] = "", fmt.Sprintf(`"%d":""`, i)
	}
	fits := boarddv1.MaxItems / 101 // each counts itself and its labels
	for _, n := range []int{fits, fits + 1} {
		request := &boarddv1.PostJobsRequest{}
		for range n {
			request.Jobs = append(request.Jobs, labels)
		}
		data, err := boarddv1.Binary{}.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		text := `{"jobs":[` + strings.TrimSuffix(strings.Repeat(`{"labels":{`+strings.Join(pairs, ",")+`}},`, n), ",") + `]}`
		for name, data := range map[string][]byte{"proto": data, "json": []byte(text)} {
			got := read(t, name, data, request)
			if (got != "") != (n > fits) || n > fits && !strings.Contains(got, "in all lists of a request together") {
				t.Errorf("%s: %d jobs with 100 labels: %q", name, n, got)
			}
		}
	}
}

// TestPackedAndTwice: two ways to have more than is seen at a glance.
func TestPackedAndTwice(t *testing.T) {
	t.Parallel()
	states := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), bytes.Repeat([]byte{0x81, 0x00}, 17))
	if got := read(t, "proto", states, &boarddv1.ListJobsRequest{}); got != "states: want at most 16 items" {
		t.Errorf("a list in one piece: %q", got)
	}
	settings, err := proto.Marshal(&boarddv1.CreateBoardRequest{Board: &boarddv1.BoardSettings{Name: "b", Eligibility: []*boarddv1.PolicyRule{{Policy: "p"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, "proto", append(settings, settings...), &boarddv1.CreateBoardRequest{}); got != "board: the field is given twice" {
		t.Errorf("a message that is put together from two: %q", got)
	}
}

// TestMostIsEnough: what a board takes, a request can hold, and one more within an
// item is for the board to refuse, so that the item fails alone.
func TestMostIsEnough(t *testing.T) {
	t.Parallel()
	of := func(m proto.Message, name protoreflect.Name) int {
		return boarddv1.Most(m.ProtoReflect().Descriptor().Fields().ByName(name))
	}
	for what, c := range map[string]struct{ most, least int }{
		"jobs":                     {of(&boarddv1.PostJobsRequest{}, "jobs"), board.MaxBatch},
		"uuids":                    {of(&boarddv1.GetJobsRequest{}, "uuids"), board.MaxBatch},
		"claims":                   {of(&boarddv1.ExtendClaimsRequest{}, "claims"), board.MaxBatch},
		"entries":                  {of(&boarddv1.AppendLogRequest{}, "entries"), board.MaxLogBatch},
		"names":                    {of(&boarddv1.ClaimJobsRequest{}, "names"), board.MaxClaimNames},
		"workerLabels":             {of(&boarddv1.ClaimJobsRequest{}, "worker_labels"), job.MaxLabels},
		"labels":                   {of(&boarddv1.NewJob{}, "labels"), job.MaxLabels + 1},
		"operations":               {of(&boarddv1.NewJob{}, "operations"), job.MaxOperations + 1},
		"after":                    {of(&boarddv1.NewJob{}, "after"), job.MaxAfter + 1},
		"eligibility":              {of(&boarddv1.BoardSettings{}, "eligibility"), config.MaxRules},
		"a batch with every label": {boarddv1.MaxItems, board.MaxBatch * (1 + job.MaxLabels)},
	} {
		if c.most < c.least {
			t.Errorf("%s: a request has at most %d, and a board takes %d", what, c.most, c.least)
		}
	}
}

// FuzzRequests reads any bytes as each request, in both forms. What is taken keeps to
// every limit, and of what is refused nothing is left.
func FuzzRequests(f *testing.F) {
	all := requestMessages(f)
	for i, m := range all {
		for _, l := range listsOf(m.ProtoReflect().Descriptor(), nil) {
			for _, n := range []int{1, boarddv1.Most(l.list), boarddv1.Most(l.list) + 1} {
				f.Add(i, true, l.binary(n))
				f.Add(i, false, []byte(l.json(n)))
			}
		}
	}
	f.Fuzz(func(t *testing.T, which int, binary bool, data []byte) {
		m := all[uint(which)%uint(len(all))].ProtoReflect().New().Interface()
		name := "json"
		if binary {
			name = "proto"
		}
		items := 0
		if read(t, name, data, m) == "" {
			items = countItems(t, m.ProtoReflect())
		} else {
			m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
				t.Fatalf("a request was refused, and has its %s", f.Name())
				return false
			})
		}
		if items > boarddv1.MaxItems {
			t.Fatalf("%d items were taken", items)
		}
	})
}

// countItems fails for a list past its limit, and counts the items of all.
func countItems(t *testing.T, m protoreflect.Message) (n int) {
	t.Helper()
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		has := 0
		switch {
		case f.IsMap():
			has = v.Map().Len()
		case f.IsList():
			has = v.List().Len()
			for i := 0; f.Kind() == protoreflect.MessageKind && i < has; i++ {
				n += countItems(t, v.List().Get(i).Message())
			}
		case f.Kind() == protoreflect.MessageKind:
			n += countItems(t, v.Message())
		}
		if n += has; (f.IsList() || f.IsMap()) && has > boarddv1.Most(f) {
			t.Fatalf("%s has %d items, more than %d", f.FullName(), has, boarddv1.Most(f))
		}
		return true
	})
	return n
}
