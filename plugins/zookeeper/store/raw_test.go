package store_test

import (
	"time"

	"github.com/go-zookeeper/zk"
)

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// raw writes a node as any program may.
func (p *pair) raw(path, data string) {
	p.Helper()
	c := p.connect()
	defer c.Close()
	if _, err := c.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll)); err != nil {
		p.Fatalf("%s: %v", path, err)
	}
}

// data returns a node's data.
func (p *pair) data(path string) string {
	p.Helper()
	c := p.connect()
	defer c.Close()
	data, _, err := c.Get(path)
	if err != nil {
		p.Errorf("%s: %v", path, err)
	}
	return string(data)
}

func (p *pair) connect() *zk.Conn {
	p.Helper()
	c, _, err := zk.Connect(p.z.Servers(), 10*time.Second, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		p.Fatal(err)
	}
	return c
}

// remove deletes a node as any program may.
func (p *pair) remove(path string) {
	p.Helper()
	c := p.connect()
	defer c.Close()
	if err := c.Delete(path, -1); err != nil {
		p.Errorf("%s: %v", path, err)
	}
}
