package drivertest

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// moved checks that a job which one host takes off the board and puts there again is
// there for every host, whatever of that it has noticed: a host that knew the job before
// does not take it for one that has ended, now or a while later.
func (c *crowd) moved() {
	ways := []struct {
		name string
		move func(h *env, p *driver.Posting)
	}{
		{"set aside and restored", func(h *env, p *driver.Posting) {
			h.must(plain(driver.Trash, p.ID))
			h.must(plain(driver.Restore, p.ID))
		}},
		{"set aside, purged and posted again", func(h *env, p *driver.Posting) {
			h.must(plain(driver.Trash, p.ID))
			h.must(plain(driver.Purge, p.ID))
			h.must(postOp(p))
		}},
	}
	moved := map[job.ID]string{}
	for round := range 4 {
		for n, way := range ways {
			p := c.post()
			moved[p.ID] = way.name
			c.everywhere(p.ID, "posted")
			way.move(c.hosts[(round+n)%len(c.hosts)], p)
			if round%2 == 0 {
				c.everywhere(p.ID, way.name)
			}
		}
	}
	last := c.post()
	for _, h := range c.hosts {
		f := h.follow(h.status.Position)
		f.until(h, h.readParts(last.ID, 0).Position) // now every host has noticed
	}
	for id, way := range moved {
		c.everywhere(id, way+", and noticed")
	}
}

// everywhere checks that a job is UNCLAIMED for every host.
func (c *crowd) everywhere(id job.ID, why string) {
	for n, h := range c.hosts {
		if r := h.readParts(id, 0); r.State != job.Unclaimed {
			h.Errorf("%s: the job is %v at version %d, says host %d: want it UNCLAIMED", why, r.State, r.Version, n)
		}
	}
}
