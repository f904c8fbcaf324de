package store

import (
	"context"

	"github.com/boardd/boardd/sdk/driver"
)

func (b *board) startSweep(*standing) func() { return func() {} }

func (b *board) observe(ctx context.Context, st *standing, after driver.Position, yield func(driver.Changes) bool) error {
	<-ctx.Done()
	return ended(ctx)
}

func (b *board) shift(position uint64) uint64 { return position }
