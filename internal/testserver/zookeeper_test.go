package testserver_test

import (
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

func TestZooKeeper(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	if text := z.Word(0, "envi"); !strings.Contains(text, "zookeeper.version") {
		t.Errorf("envi: %q", text)
	}
	if len(z.Servers()) != 1 || z.Leader() != -1 {
		t.Errorf("servers %v, leader %d: want one server that leads nobody", z.Servers(), z.Leader())
	}
	z.Kill(0)
	z.Start(0)
	if text := z.Word(0, "ruok"); text != "imok" {
		t.Errorf("ruok after a restart: %q", text)
	}
}
