package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/policy"
)

func TestFacts(t *testing.T) {
	t.Parallel()
	specs := []policy.FactSpec{
		{Name: "frames", Path: "/render/frames", Type: policy.IntFact},
		{Name: "same", Path: "/render/frames", Type: policy.FloatFact},
		{Name: "second", Path: "/list/1", Type: policy.StringFact},
		{Name: "escaped", Path: "/a~1b/~0", Type: policy.BoolFact},
		{Name: "due", Path: "/due", Type: policy.TimeFact},
	}
	due := time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)
	none := []policy.Fact{nil, nil, nil, nil, nil}
	for _, test := range []struct {
		details string
		want    []policy.Fact
	}{
		{`{"render":{"frames":240,"other":[{}]},"list":["x","y","z"],"a/b":{"~":true},"due":"2030-01-31T09:00:00Z"}`, []policy.Fact{int64(240), 240.0, "y", true, due}},
		{`{"render":{"frames":1e3}}`, []policy.Fact{int64(1000), 1000.0, nil, nil, nil}},
		{`{"render":{"frames":1.5}}`, []policy.Fact{nil, 1.5, nil, nil, nil}},
		{`{"render":{"frames":9007199254740993}}`, []policy.Fact{int64(9007199254740993), 9007199254740992.0, nil, nil, nil}},
		{`{"render":{"frames":1e400}}`, none},
		{`{"render":{"frames":1},"render":{}}`, none},
		{`{"render":{"frames":1,"frames":2}}`, []policy.Fact{int64(2), 2.0, nil, nil, nil}},
		{`{"render":[1],"list":{"1":"one"},"due":"soon","a/b":{"~":null}}`, []policy.Fact{nil, nil, "one", nil, nil}},
		{`{"list":["","` + strings.Repeat("x", policy.MaxFactText) + `"]}`, []policy.Fact{nil, nil, strings.Repeat("x", policy.MaxFactText), nil, nil}},
		{`{"list":["","` + strings.Repeat("x", policy.MaxFactText+1) + `"]}`, none},
		{`{"render":{"frames":1}`, none}, // cut
		{`not JSON`, none},
		{``, none},
		{`7`, none},
	} {
		if diff := cmp.Diff(test.want, policy.Facts([]byte(test.details), specs)); diff != "" {
			t.Errorf("%.80s: %s", test.details, diff)
		}
	}
	if got := policy.Facts([]byte(`7`), []policy.FactSpec{{Path: "", Type: policy.IntFact}}); got[0] != int64(7) {
		t.Errorf("the whole document: %v", got)
	}
}

func FuzzFacts(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,{"c":"x"}]}}`))
	f.Add([]byte(`{"a":1,"a":{"b":2}}`))
	specs := []policy.FactSpec{{Path: "/a/b/1/c", Type: policy.StringFact}, {Path: "/a/b", Type: policy.IntFact}, {Path: "/a", Type: policy.FloatFact}, {Path: "", Type: policy.BoolFact}}
	f.Fuzz(func(t *testing.T, details []byte) {
		for i, v := range policy.Facts(details, specs) {
			switch v.(type) {
			case nil, string, int64, float64, bool:
			default:
				t.Errorf("fact %d is %v (%T)", i, v, v)
			}
		}
	})
}
