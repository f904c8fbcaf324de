package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/policy/build"
)

// compiling is a tenant that gives its board policies without pause: each time another
// version of a large module, which has to be compiled, and is promoted or has the board
// ask it in the shadow.
type compiling struct {
	admin  *client.Admin
	module []byte

	versions, refused atomic.Int64
}

func newCompiling(b *testing.B, admin *client.Admin) *compiling {
	b.Helper()
	module, err := build.Folder(b.Context(), filepath.Join("..", "policies", "templates", "go"), os.Environ())
	if missing, ok := errors.AsType[*build.Missing](err); ok {
		testneed.Skip(b, missing.Error())
	}
	if err != nil {
		b.Fatal(err)
	}
	return &compiling{admin: admin, module: module}
}

// version is the module with a number in a section that means nothing.
func (c *compiling) version() []byte {
	number := binary.BigEndian.AppendUint64(nil, uint64(c.versions.Add(1)))
	section := append([]byte{7}, "version"...)
	section = append(section, number...)
	return append(append(slices.Clip(c.module), 0, byte(len(section))), section...)
}

// run goes on until ctx ends: one promotes and one has the board ask in the shadow.
func (c *compiling) run(ctx context.Context, b *testing.B) {
	b.Helper()
	var callers sync.WaitGroup
	defer callers.Wait()
	for _, shadow := range []bool{false, true} {
		callers.Go(func() {
			name := fmt.Sprint("shadow-", shadow)
			for ctx.Err() == nil {
				_, err := c.admin.PutPolicy(ctx, &boarddv1.PutPolicyRequest{Name: name, Module: c.version()})
				if err == nil && shadow {
					_, err = c.admin.ShadowPolicy(ctx, &boarddv1.ShadowPolicyRequest{Board: "loud", Name: name})
				} else if err == nil {
					_, err = c.admin.PromotePolicy(ctx, &boarddv1.PromotePolicyRequest{Board: "loud", Name: name})
				}
				if err != nil && ctx.Err() == nil {
					if c.refused.Add(1) == 1 {
						b.Logf("refused: %v", err)
					}
				}
			}
		})
	}
}
