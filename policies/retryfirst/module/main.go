// Command module is the policy retry-first as a WebAssembly module.
package main

import (
	"github.com/boardd/boardd/policies/retryfirst"
	"github.com/boardd/boardd/sdk/policy/guest"
)

func init() { guest.Serve(retryfirst.New()) }

func main() {}
