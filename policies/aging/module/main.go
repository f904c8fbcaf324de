// Command module is the policy aging as a WebAssembly module.
package main

import (
	"github.com/boardd/boardd/policies/aging"
	"github.com/boardd/boardd/sdk/policy/guest"
)

func init() { guest.Serve(aging.New()) }

func main() {}
