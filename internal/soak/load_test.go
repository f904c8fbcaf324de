package soak_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// How much one round does: the same in each, so that what is left can be compared.
const (
	jobsARound     = 400
	workers        = 8
	boardsARound   = 6
	watchersARound = 24
)

// deployment is a server with a client, and what its store says of itself.
type deployment struct {
	*testing.T

	server *testserver.Server
	client *client.Client
	module []byte // of a policy
	store  func(s map[string]int64)
}

const boardName = "jobs"

// settle makes the board on which the load is.
func (d *deployment) settle(ctx context.Context) {
	d.Helper()
	_, err := d.client.Admin().CreateBoard(ctx, &boarddv1.CreateBoardRequest{Board: &boarddv1.BoardSettings{
		Name: boardName, Backend: "main", IdempotencyWindow: durationpb.New(time.Second),
	}})
	if err != nil {
		d.Fatal(err)
	}
	if d.module == nil {
		return
	}
	if _, err := d.client.Admin().PutPolicy(ctx, &boarddv1.PutPolicyRequest{Name: "some", Module: d.module}); err != nil {
		d.Fatal(err)
	}
}

// round does everything once, side by side, and leaves nothing.
func (d *deployment) round(ctx context.Context, n int) {
	d.Helper()
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { d.work(ctx) })
	}
	all.Go(func() { d.watch(ctx) })
	all.Go(func() { d.administer(ctx, n) })
	all.Wait()
}

// work posts, claims and ends jobs.
func (d *deployment) work(ctx context.Context) {
	b := d.client.Board(boardName)
	owner := client.NewOwner()
	for range jobsARound / workers {
		if _, err := b.Post(ctx, &client.NewJob{Name: "soak", Details: []byte(`{"a":"` + strings.Repeat("x", 500) + `"}`)}); err != nil {
			d.Errorf("post: %v", err)
			return
		}
		claims, err := b.Claim(ctx, client.ClaimOptions{Owner: owner, Wait: 30 * time.Second})
		if err != nil || len(claims) != 1 {
			d.Errorf("claim: %v, %v", claims, err)
			return
		}
		if _, err := b.AppendLog(ctx, claims[0], 0, &client.NewLogEntry{Message: "a line"}); err != nil {
			d.Errorf("log: %v", err)
		}
		if err := b.Consume(ctx, claims[0]); err != nil {
			d.Errorf("consume: %v", err)
		}
	}
}

// watch has watchers come and go.
func (d *deployment) watch(ctx context.Context) {
	for range watchersARound {
		inner, cancel := context.WithTimeout(ctx, 150*time.Millisecond)
		for _, err := range d.client.Board(boardName).Watch(inner, "") {
			if err != nil && inner.Err() == nil {
				d.Errorf("watch: %v", err)
			}
		}
		cancel()
	}
}

// administer makes boards, tokens and a policy's releases, and takes them away.
func (d *deployment) administer(ctx context.Context, n int) {
	admin := d.client.Admin()
	try := func(what string, err error) {
		if err != nil {
			d.Errorf("%s: %v", what, err)
		}
	}
	for i := range boardsARound {
		name := fmt.Sprintf("round-%d-%d", n, i)
		_, err := admin.CreateBoard(ctx, &boarddv1.CreateBoardRequest{Board: &boarddv1.BoardSettings{Name: name, Backend: "main"}})
		try("create a board", err)
		_, err = d.client.Board(name).Post(ctx, &client.NewJob{Name: "x"}, &client.NewJob{Name: "y"})
		try("post", err)
		_, err = admin.DeleteBoard(ctx, &boarddv1.DeleteBoardRequest{Name: name, Purge: true})
		try("delete a board", err)
		_, err = admin.CreateToken(ctx, &boarddv1.CreateTokenRequest{Name: name, Roles: []string{"worker"}})
		try("create a token", err)
		_, err = admin.RevokeToken(ctx, &boarddv1.RevokeTokenRequest{Name: name})
		try("revoke a token", err)
		if d.module == nil {
			continue
		}
		_, err = admin.PromotePolicy(ctx, &boarddv1.PromotePolicyRequest{Board: boardName, Name: "some"})
		try("promote a policy", err)
		_, err = admin.RollbackPolicy(ctx, &boarddv1.RollbackPolicyRequest{Board: boardName, Name: "some"})
		try("roll a policy back", err)
	}
}

// get reads a page of the server.
func (d *deployment) get(path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(d.Context(), http.MethodGet, d.server.Addr+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+testserver.RootSecret)
	return http.DefaultClient.Do(r)
}
