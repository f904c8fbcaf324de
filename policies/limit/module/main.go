// Command module is the policy limit as a WebAssembly module.
package main

import (
	"github.com/boardd/boardd/policies/limit"
	"github.com/boardd/boardd/sdk/policy/guest"
)

func init() { guest.Serve(limit.New()) }

func main() {}
