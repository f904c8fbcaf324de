package store_test

import (
	"slices"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
)

// TestExamine has everything wrong at once that an examination finds.
func TestExamine(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true, Config: []string{"4lw.commands.whitelist=srvr"}})
	p := &pair{desk: sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/p/a", nil), z: z}
	p.watch()
	if codes := p.examine(); !slices.Equal(codes, []string{"envi-not-allowed"}) {
		t.Errorf("an empty board: %v", codes)
	}
	sibling := sit(t, p.driver, "/p/b", nil)
	first, second, third := p.post("first", `{}`, nil), sibling.post("second", `{}`, nil), p.post("third", `{}`, nil)
	p.must(driver.Op{Kind: driver.Trash, Job: first})
	sibling.must(driver.Op{Kind: driver.Trash, Job: second})
	p.raw("/p/a/job0000000099.lock", `{"owner": "nobody"}`)
	p.raw("/p/a/job0000000001.lock", `{}`)
	p.until("the lock without an owner is known", func() bool { return p.read(third).Holder != nil })
	codes := p.examine()
	if !slices.Equal(codes, []string{"envi-not-allowed", "lock-without-owner", "orphan-lock"}) {
		t.Errorf("the board has %v", codes)
	}
	if codes := sibling.examine(); !slices.Contains(codes, "trash-collides") {
		t.Errorf("the sibling has %v", codes)
	}
	p.remove("/p/.trash/job0000000000")
	if codes := p.examine(); !slices.Contains(codes, "trash-emptied") {
		t.Errorf("with an empty trash: %v", codes)
	}
	for range p.driver.(driver.Examiner).Examine(t.Context(), p.name) { //nolint:forcetypeassert,errcheck // what it gives is not looked at
		break
	}
}

// examine returns the codes of what is found, sorted.
func (k *desk) examine() []string {
	k.Helper()
	x, ok := k.driver.(driver.Examiner)
	if !ok {
		k.Fatal("the driver cannot be asked what is wrong")
	}
	var codes []string
	for f, err := range x.Examine(k.Context(), k.name) {
		if err != nil {
			k.Fatal(err)
		}
		if f.Subject == "" || f.Problem == "" || f.Severity == 0 {
			k.Errorf("a finding without words: %+v", f)
		}
		codes = append(codes, f.Code)
	}
	slices.Sort(codes)
	return codes
}
