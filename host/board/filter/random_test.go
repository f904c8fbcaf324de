package filter

import (
	"cmp"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// condition is what a filter is written from, and read again by rules of its own.
type condition struct{ field, op, value string }

// Values that are easily taken for others.
var values = []string{
	"a", "A", "", "10", "9", "1e1", "10.0", "010", "+10", "-10", "-0", "0", ".5", "0.50", "5.", "1e400", "-1e-400", "nan", "inf", "-Infinity",
	"0x10", "1_0", "9007199254740993", "9007199254740992", "12345678901234567890", "12345678901234567891", "1e", "e1", "-", ".", "é", "AND", `q"\`, "true",
}

// decimal is what the manual calls a number.
var decimal = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,6})?$`)

func naiveNumber(text string) *big.Rat {
	if !decimal.MatchString(text) {
		return nil
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	return r
}

// naive says whether a value that is there, or not, fulfils a condition.
func (c *condition) naive(value string, there, literal bool) bool {
	if !there {
		return c.op == "!="
	}
	a, b := naiveNumber(value), naiveNumber(c.value)
	ordered := c.op != "=" && c.op != "!="
	switch {
	case a != nil && b != nil:
		return ordering(c.op, a.Cmp(b))
	case b != nil && ordered, literal && ordered:
		return false
	}
	return ordering(c.op, strings.Compare(value, c.value))
}

// orders are what fulfils an operator.
var orders = map[string][]int{"=": {0}, "!=": {-1, 1}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}

func ordering(op string, order int) bool { return slices.Contains(orders[op], order) }

// TestRandomFilters writes filters by the grammar, and compares what they say of random
// jobs with rules that are written down a second time.
func TestRandomFilters(t *testing.T) {
	t.Parallel()
	matched := 0
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // drawn again by its seed
		pick := func(list []string) string { return list[r.IntN(len(list))] }
		s := &Subject{Name: pick(values), Owner: pick(values), Priority: job.Normal, Attempt: int32(r.IntN(3)), CreatedAt: time.Unix(int64(r.IntN(3)), 0)}
		label, labelled := pick(values), r.IntN(4) > 0
		if labelled {
			s.Labels = []job.Label{{Key: "k", Value: label}}
		}
		detail, literal := pick(values), false
		details := fmt.Sprintf(`{"k":%s}`, strconv.Quote(detail))
		if n := r.IntN(1000) - 500; r.IntN(2) == 0 {
			detail, literal = strconv.Itoa(n), true
			details = fmt.Sprintf(`{"k":%d}`, n)
		}
		want := true
		var texts []string
		for range 1 + r.IntN(3) {
			c := condition{pick([]string{"name", "owner", "labels.k", "details.k", "attempt"}), pick(operatorTexts[:]), pick(values)}
			switch c.field {
			case "name":
				want = want && ordering(c.op, strings.Compare(s.Name, c.value))
			case "owner":
				want = want && ordering(c.op, strings.Compare(s.Owner, c.value))
			case "labels.k":
				want = want && c.naive(label, labelled, false)
			case "details.k":
				want = want && c.naive(detail, true, literal)
			case "attempt":
				c.value = strconv.Itoa(r.IntN(3))
				n, _ := strconv.Atoi(c.value)
				want = want && ordering(c.op, cmp.Compare(int(s.Attempt), n))
			}
			quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(c.value) + `"`
			texts = append(texts, c.field+pick([]string{"", " "})+c.op+pick([]string{"", " "})+quoted)
		}
		text := strings.Join(texts, pick([]string{" AND ", " and ", "  AND "}))
		f, err := Parse(text)
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, text, err)
		}
		if got := f.Matches(s) && f.MatchesDetails([]byte(details)); got != want {
			t.Fatalf("seed %d: %s\nis %t of %+v %s, want %t", seed, text, got, s, details, want)
		}
		if want {
			matched++
		}
	}
	if matched < 2_000 || matched > 18_000 {
		t.Errorf("%d of 20000 filters match: too few or too many to mean anything", matched)
	}
}

// Numbers are compared as whoever has time compares them.
func FuzzNumber(f *testing.F) {
	for i := range values {
		f.Add(values[i], values[(i+1)%len(values)])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, okX := readNumber(a)
		y, okY := readNumber(b)
		if okX != decimal.MatchString(a) || okY != decimal.MatchString(b) {
			t.Fatalf("%q is a number: %t, and %q: %t", a, okX, b, okY)
		}
		if !okX || !okY || max(len(a), len(b)) > 40 || strings.ContainsAny(a+b, "eE") {
			return // what is written out has to stay small
		}
		if got, want := x.compare(&y), naiveNumber(a).Cmp(naiveNumber(b)); got != want {
			t.Fatalf("%s to %s is %d, want %d", a, b, got, want)
		}
	})
}
