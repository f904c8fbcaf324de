// Command zookeeper is boardd's driver for ZooKeeper: it keeps boards as
// OpenStack TaskFlow does, and shares them with it.
package main

import (
	"github.com/boardd/boardd/plugins/zookeeper/store"
	"github.com/boardd/boardd/sdk/heapfloor"
	"github.com/boardd/boardd/sdk/plugin"
)

func main() {
	heapfloor.Keep()
	plugin.Serve(store.Program())
}
