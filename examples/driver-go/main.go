// Command files is a driver of boardd that keeps each board in a file: the
// reference driver in memory, with every change on the disk before it is
// acknowledged.
package main

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/plugin"
)

func main() {
	plugin.Serve(driver.Program{
		Info: driver.Info{
			Name:    "files",
			Version: "1.0.0",
			Summary: "Keeps each board in a file of its own, as JSON.",
			Config: driver.Schema{Fields: []driver.Field{{
				Name: "path", Type: driver.String, Doc: "the folder for the files; absent: the one that boardd makes in data_dir",
			}}},
			OneHost: true, // it has the folder for itself
		},
		Open: Open,
	})
}
