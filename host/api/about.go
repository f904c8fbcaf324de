package api

import (
	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/catalog"
)

// about is the board that a call is about.
type about struct {
	tenant string // empty: the caller's
	board  string // empty: none
}

// aboutOf returns the board that a request names.
func aboutOf(message any) (of about) {
	if m, ok := message.(interface{ GetBoard() string }); ok {
		of.board = m.GetBoard()
	}
	if m, ok := message.(interface{ GetTenant() string }); ok {
		of.tenant = m.GetTenant()
	}
	return of
}

// at is where the catalog has it.
func (of about) at(session *host.Session) catalog.At {
	if of.tenant == "" {
		of.tenant = session.Tenant()
	}
	return catalog.At{Tenant: of.tenant, Name: of.board}
}
