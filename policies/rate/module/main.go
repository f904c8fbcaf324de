// Command module is the policy rate as a WebAssembly module.
package main

import (
	"github.com/boardd/boardd/policies/rate"
	"github.com/boardd/boardd/sdk/policy/guest"
)

func init() { guest.Serve(rate.New()) }

func main() {}
