package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

const booksConfig = `
token "root" {
  roles  = ["operator"]
  secret = "not-very-secret-1234567890"
}
backend "zk" {
  driver = "zookeeper"
  config = { servers = [%q] }
}
backend "local" {
  driver = "embedded"
}
board "dir" {
  backend = "local"
  books {
    directory = %q
  }
}
board "zoo" {
  backend = "local"
  books {
    backend = "zk"
    path    = "/kept"
  }
}
board "wrong" {
  backend = "zk"
  books {
    backend = "local"
  }
}
`

// TestBooksOfTaskFlow reads the logbooks of real flows, in a folder and in
// ZooKeeper, over the network; what is spoiled is reported and left alone.
func TestBooksOfTaskFlow(t *testing.T) {
	t.Parallel()
	program := withDriver(t, "zookeeper")
	z, folder := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true}), t.TempDir()
	f := testserver.StartTaskFlow(t)
	inFolder := f.WriteBook(testserver.Args{"connection": "dir", "path": folder}, "in a folder")
	inZoo := f.WriteBook(testserver.Args{"connection": "zookeeper", "hosts": z.Servers()[0], "path": "/kept"}, "in ZooKeeper")
	config := filepath.Join(t.TempDir(), "books.hcl")
	write(t, config, fmt.Sprintf(booksConfig, z.Servers()[0], folder))
	server := testserver.Start(t, program, t.TempDir(), "--config", config)
	c, err := client.New(client.Config{Addr: server.Addr, Token: "not-very-secret-1234567890"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for board, want := range map[string]struct{ uuid, name, source string }{
		"dir": {inFolder.UUID, "in a folder", "dir://" + folder},
		"zoo": {inZoo.UUID, "in ZooKeeper", "zookeeper://zk/kept"},
	} {
		book, err := c.Board(board).Book(t.Context(), want.uuid)
		if err != nil {
			t.Fatalf("%s: %v\n%s", board, err, server.Log())
		}
		var content struct {
			Flows []struct {
				Atoms []json.RawMessage `json:"atom_details"`
			} `json:"flow_details"`
		}
		if err := json.Unmarshal(book.GetBook().GetContent(), &content); err != nil || len(content.Flows) != 1 || len(content.Flows[0].Atoms) != 4 {
			t.Errorf("%s: %v in %s", board, err, book.GetBook().GetContent())
		}
		if book.GetBook().GetName() != want.name || book.GetSource() != want.source || book.GetVersion() != 0 {
			t.Errorf("%s: %v", board, book)
		}
		if _, err := c.Board(board).Book(t.Context(), "another"); job.KindOf(err) != job.NotFound {
			t.Errorf("%s: another book: %v", board, err)
		}
	}
	if _, err := c.Board("wrong").Book(t.Context(), inZoo.UUID); job.KindOf(err) != job.Precondition || !strings.Contains(err.Error(), "embedded, cannot read TaskFlow's books") {
		t.Errorf("of a driver that cannot: %v", err)
	}

	for flow := range inFolder.Flows {
		spoiled := filepath.Join(folder, "flow_details", flow, "metadata")
		half, err := os.ReadFile(spoiled)
		if err != nil {
			t.Fatal(err)
		}
		half = half[:len(half)/2]
		write(t, spoiled, string(half))
		if _, err := c.Board("dir").Book(t.Context(), inFolder.UUID); err == nil || !strings.Contains(err.Error(), spoiled+" cannot be read: at byte ") {
			t.Errorf("half a file: %v", err)
		}
		if after, err := os.ReadFile(spoiled); err != nil || string(after) != string(half) {
			t.Errorf("afterwards it is %q, %v", after, err)
		}
	}
}
