// Command sqlite is a driver of boardd that keeps its boards in a SQLite file, by
// database/sql. It is written to be read by somebody who is about to write a driver
// for another SQL database; docs/writing-a-driver.md walks through it.
package main

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/plugin"
)

func main() { plugin.Serve(program()) }

// program says what this is: boardd asks for it before there is a store, lists it,
// and checks a user's settings by it.
func program() driver.Program {
	return driver.Program{
		Info: driver.Info{
			Name:    "sqlite",
			Version: "1.0.0",
			Summary: "Keeps boards in a SQLite file, which several servers on one machine may share.",
			Config: driver.Schema{Fields: []driver.Field{{
				Name: "path", Type: driver.String, Doc: "the file; absent: boards.sqlite in the folder that boardd makes in data_dir",
			}}},
			Board: driver.Schema{Fields: []driver.Field{{
				Name: "events", Type: driver.Integer, Doc: "how many changes are kept for watchers; absent: 8192",
			}}},
		},
		Open: open,
	}
}
