// Command module is the policy deadline as a WebAssembly module.
package main

import (
	"github.com/boardd/boardd/policies/deadline"
	"github.com/boardd/boardd/sdk/policy/guest"
)

func init() { guest.Serve(deadline.New()) }

func main() {}
