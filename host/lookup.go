package host

import (
	"context"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/job"
)

// What is not in this host's view of the catalog may have been made on another one a
// moment ago: then the store is asked.
const (
	lookupsAtOnce = 16
	lookupWithin  = 2 * time.Second
)

// look returns a board that is served, or nil if there is none. Before the catalog was
// read nobody knows whether there is one.
func (h *Host) look(ctx context.Context, at At) (*hosted, error) {
	unread := h.catalog.unread() // before the registry is looked at, which is filled before the catalog counts as read
	if found := h.registry.board(at.Tenant, at.Board); found != nil {
		return found, nil
	}
	if unread {
		return nil, errUnread
	}
	if err := h.lookup(ctx, catalog.Key("board", at.Tenant, at.Board)); err != nil {
		return nil, err
	}
	return h.registry.board(at.Tenant, at.Board), nil
}

var errUnread = error(job.Errorf(job.Unavailable, "the server has not read its catalog of boards yet: try again in a moment"))

// lookup asks the store whether it has a record that this host has not seen yet, and
// waits until it has.
func (h *Host) lookup(ctx context.Context, key string) error {
	c := h.catalog.open()
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	select {
	case h.lookups <- struct{}{}:
		defer func() { <-h.lookups }()
	case <-ctx.Done():
		return errUnread
	}
	if err := c.Refresh(ctx, key); err != nil {
		h.logger.Debug("the catalog could not be asked for a record", "record", key, "error", err)
		return &job.Error{Kind: job.Unavailable, Message: "the catalog's store does not answer, and this server does not know of it: try again in a moment", Err: err}
	}
	return nil
}
