// Command redis is the driver that keeps boards in Redis or Valkey, shared with
// OpenStack TaskFlow. boardd starts it; see docs/redis.md.
package main

import (
	"os"

	"github.com/boardd/boardd/plugins/redis/store"
	"github.com/boardd/boardd/sdk/heapfloor"
	"github.com/boardd/boardd/sdk/plugin"
)

func main() {
	heapfloor.Keep(os.Getenv("GOGC"), heapfloor.Small)
	plugin.Serve(store.Program())
}
