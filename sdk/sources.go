// Package sdk has the sources of what a policy in Go is made with, for building one
// outside of this repository.
package sdk

import "embed"

// Sources are the packages that a policy, and the program which tries one, are built
// from, in folders as here. Of package nearest there is none: it needs a module of
// somebody else's.
//
//go:embed job/*.go shorten/*.go policy/*.go policy/boardd_policy.* policy/abi/*.go policy/guest/*.go policy/block/*.go policy/native/*.go
var Sources embed.FS
