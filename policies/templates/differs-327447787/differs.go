package main

import (
	"runtime"

	"github.com/boardd/boardd/sdk/policy/guest"
)

func init() {
	guest.Serve(&guest.Policy{Score: func(_ guest.Batch, j guest.Job) int64 {
		if runtime.GOARCH == "wasm" || j.Name() != "last" {
			return 0
		}
		return 1
	}})
}

func main() {}
