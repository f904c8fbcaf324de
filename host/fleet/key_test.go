package fleet_test

import (
	"strings"
	"testing"

	"github.com/boardd/boardd/host/fleet"
	"github.com/boardd/boardd/sdk/job"
)

func key(t *testing.T, text string) fleet.Key {
	t.Helper()
	k, err := fleet.ParseKey([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSeal(t *testing.T) {
	t.Parallel()
	one, two := string(fleet.NewKey()), string(fleet.NewKey())
	header, proof, err := key(t, one).Seal(fleet.Passed{From: "a", To: "b", Number: 7, Call: "/x", Caller: []byte(`{"tenant":"acme"}`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{one, one + "\n" + two, "\n" + two + "\n" + one + "\n"} { // while a key is put in the place of another
		p, got, err := key(t, text).Open(header)
		if err != nil || p.From != "a" || p.Number != 7 || string(p.Caller) != `{"tenant":"acme"}` || got != proof {
			t.Errorf("opened as %+v with the proof %q (want %q), %v", p, got, proof, err)
		}
	}
	body, seal, _ := strings.Cut(header, ".")
	for _, wrong := range []string{"", ".", body, body + ".", "." + seal, header + "A", "A" + header, strings.ToUpper(header)} {
		if _, _, err := key(t, one).Open(wrong); job.KindOf(err) != job.Unauthenticated {
			t.Errorf("Open(%.40q...): %v, want Unauthenticated", wrong, err)
		}
	}
	if _, _, err := key(t, two).Open(header); job.KindOf(err) != job.Unauthenticated {
		t.Errorf("with another key: %v, want Unauthenticated", err)
	}
	if _, _, err := (fleet.Key{}).Open(header); job.KindOf(err) != job.Unauthenticated {
		t.Errorf("without a key: %v, want Unauthenticated", err)
	}
	if _, _, err := (fleet.Key{}).Seal(fleet.Passed{}); job.KindOf(err) != job.Unavailable {
		t.Errorf("sealed without a key: %v, want Unavailable", err)
	}
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	good := strings.Repeat("k", fleet.MinSecret)
	for _, wrong := range []string{"", "\n\n", good[1:], good + "\nshort", strings.Repeat(good+"\n", fleet.MaxSecrets+1)} {
		if _, err := fleet.ParseKey([]byte(wrong)); job.KindOf(err) != job.Invalid || strings.Contains(err.Error(), good[1:]) {
			t.Errorf("ParseKey(%q): %v, want Invalid without the secret", wrong, err)
		}
	}
	if _, err := fleet.ParseKey([]byte(strings.Repeat(good+"\r\n", fleet.MaxSecrets))); err != nil {
		t.Error(err)
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	const size = 1 << 15
	var w fleet.Window
	if w.Fresh("a", 1) {
		t.Error("a sender that nobody knows was let in")
	}
	w.Keep([]string{"a", "b"})
	for _, step := range []struct {
		number uint64
		fresh  bool
	}{
		{5, true},
		{5, false},
		{3, true},
		{3, false},
		{4, true},
		{6, true},
		{5, false},
		{size + 5, true},
		{5, false},
		{6, false},
		{7, true},
		{7, false},
		{size + 4, true},
		{10 * size, true},
		{9*size + 1, true},
		{9 * size, false},
		{9*size + 1, false},
		{10 * size, false},
	} {
		if got := w.Fresh("a", step.number); got != step.fresh {
			t.Errorf("number %d: fresh is %v, want %v", step.number, got, step.fresh)
		}
	}
	if !w.Fresh("b", 5) {
		t.Error("the numbers of one sender are another one's")
	}
	w.Keep([]string{"a"})
	if w.Fresh("b", 6) || w.Fresh("a", 10*size) || !w.Fresh("a", 10*size+1) {
		t.Error("who may send no more does, or what was seen was forgotten")
	}
}

// TestSealPublic has a server believe where clients may go only from who has the key, and
// only for the answer with which it was said.
func TestSealPublic(t *testing.T) {
	t.Parallel()
	one, two := string(fleet.NewKey()), string(fleet.NewKey())
	const public = "https://one.example.org:7422"
	header := key(t, one).SealPublic("proof", public)
	for _, text := range []string{one, two + "\n" + one} {
		if got := key(t, text).OpenPublic("proof", header); got != public {
			t.Errorf("opened as %q", got)
		}
	}
	_, seal, _ := strings.Cut(header, " ")
	for _, c := range []struct{ key, proof, header string }{
		{two, "proof", header},
		{one, "another", header},
		{one, "proof", "https://evil.example.org:7422 " + seal},
		{one, "proof", public},
		{one, "proof", public + " "},
		{one, "proof", public + " ?"},
		{one, "proof", " " + seal},
		{one, "proof", ""},
	} {
		if got := key(t, c.key).OpenPublic(c.proof, c.header); got != "" {
			t.Errorf("%+v is opened as %q", c, got)
		}
	}
	if got := key(t, one).SealPublic("proof", ""); got != "" {
		t.Errorf("no address is sealed as %q", got)
	}
}
