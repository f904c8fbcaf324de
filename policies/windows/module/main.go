// Command module is the policy windows as a WebAssembly module.
package main

import (
	"github.com/boardd/boardd/policies/windows"
	"github.com/boardd/boardd/sdk/policy/guest"
)

func init() { guest.Serve(windows.New()) }

func main() {}
