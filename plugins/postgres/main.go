// Command postgres is the driver that keeps boards in PostgreSQL. boardd starts it;
// see docs/postgres.md.
package main

import (
	"github.com/boardd/boardd/plugins/postgres/store"
	"github.com/boardd/boardd/sdk/heapfloor"
	"github.com/boardd/boardd/sdk/plugin"
)

func main() {
	heapfloor.Keep()
	plugin.Serve(store.Program())
}
