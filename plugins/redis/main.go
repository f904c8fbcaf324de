// Command redis is the driver that keeps boards in Redis or Valkey, shared with
// OpenStack TaskFlow. boardd starts it; see docs/redis.md.
package main

import (
	"github.com/boardd/boardd/plugins/redis/store"
	"github.com/boardd/boardd/sdk/heapfloor"
	"github.com/boardd/boardd/sdk/plugin"
)

func main() {
	heapfloor.Keep()
	plugin.Serve(store.Program())
}
