// Command module is the policy fair-share as a WebAssembly module.
package main

import (
	"github.com/boardd/boardd/policies/fairshare"
	"github.com/boardd/boardd/sdk/policy/guest"
)

func init() { guest.Serve(fairshare.New()) }

func main() {}
