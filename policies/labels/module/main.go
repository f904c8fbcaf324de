// Command module is the policy labels as a WebAssembly module.
package main

import (
	"github.com/boardd/boardd/policies/labels"
	"github.com/boardd/boardd/sdk/policy/guest"
)

func init() { guest.Serve(labels.New()) }

func main() {}
