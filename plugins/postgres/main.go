// Command postgres is the driver that keeps boards in PostgreSQL. boardd starts it;
// see docs/postgres.md.
package main

import (
	"os"

	"github.com/boardd/boardd/plugins/postgres/store"
	"github.com/boardd/boardd/sdk/heapfloor"
	"github.com/boardd/boardd/sdk/plugin"
)

func main() {
	heapfloor.Keep(os.Getenv("GOGC"), heapfloor.Small)
	plugin.Serve(store.Program())
}
