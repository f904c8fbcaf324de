package plugin

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func TestProcess(t *testing.T) {
	t.Parallel()
	p, err := Start(t.Context(), command(t, "store"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if diff := cmp.Diff(storeProgram().Info, p.Info()); diff != "" {
		t.Errorf("Info (-want +got):\n%s", diff)
	}
	d, err := p.Open(t.Context(), driver.Config{Settings: []byte(`{"address":"x"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	results := d.Apply(t.Context(), "b", []driver.Op{{Kind: driver.Update, Job: job.ID{7}, Version: 4}})
	if diff := cmp.Diff([]driver.Result{{Position: 1, Version: 5}}, results); diff != "" {
		t.Errorf("Apply (-want +got):\n%s", diff)
	}
	if err := d.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	<-p.Exited()
	if got := p.Ending().Error(); !strings.Contains(got, "exit status 0") {
		t.Errorf("the process ended with %q, want exit status 0", got)
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		act  string
		want []string
	}{
		{"garbage", []string{"driver garbage: ", "no handshake", `it printed "starting up ?[31m..."`}},
		{"endless", []string{"driver endless: ", "longer than 4096 bytes"}},
		{"version", []string{"driver version: ", `version "99"`, "this host speaks 1"}},
		{"elsewhere", []string{"/tmp/somebody-elses.sock", "is not in the folder"}},
		{"exit", []string{"driver exit: ", "exit status 3", "no such library"}},
		{"hang", []string{"driver hang: ", "did not say its handshake within 500ms"}},
	} {
		t.Run(test.act, func(t *testing.T) {
			t.Parallel()
			c := command(t, test.act)
			if test.act == "hang" {
				c.Timeout = 500 * time.Millisecond
			}
			p, err := Start(t.Context(), c)
			if err == nil {
				p.Abort()
				t.Fatal("Start succeeded")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want %q in it", err, want)
				}
			}
		})
	}
}

func TestStartCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := Start(ctx, command(t, "hang")); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("the error is %v, want the deadline", err)
	}
}
