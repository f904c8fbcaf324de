// Command zookeeper is boardd's driver for ZooKeeper: it keeps boards as
// OpenStack TaskFlow does, and shares them with it.
package main

import (
	"os"

	"github.com/boardd/boardd/plugins/zookeeper/store"
	"github.com/boardd/boardd/sdk/heapfloor"
	"github.com/boardd/boardd/sdk/plugin"
)

func main() {
	heapfloor.Keep(os.Getenv("GOGC"), heapfloor.Small)
	plugin.Serve(store.Program())
}
