package store

import (
	_ "embed"
	"encoding/binary"
	"strings"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

//go:embed lua/usual.lua
var usualLua string

// usual are the constants of lua/usual.lua: what stands in ops that are usual, and in what is
// written of them, beside what differs from one to the next.
func usual() map[string]string {
	var post, end packer
	post.head(&driver.Op{Kind: driver.Post, Event: job.Posted}, job.ID{})
	post.flag(false) // it replaces nothing
	end.head(&driver.Op{Kind: driver.Remove, Precondition: driver.HeldByToken, Event: job.ConsumedEvent}, job.ID{})
	end.ending(nil)
	var posted packer
	posted.limits(nil)
	posted.keys(nil)
	posted.text("") // it waits for no group
	posted.flag(false)
	noOwner := binary.BigEndian.AppendUint64(nil, ^uint64(1)) // what is left of a lease: -2
	open := string([]byte{1, byte(job.Unclaimed)})
	values := map[string]string{
		"USUAL_POST":   string(post.b[53:86]),
		"USUAL_POSTED": string(posted.b),
		"USUAL_END":    string(end.b[53:77]),
		"USUAL_ENDING": string(end.b[109:]),
		"USUAL_PAST":   string([]byte{1, byte(job.Consumed)}),
		"USUAL_STAMP":  string([]byte{byte(driver.Remove), byte(driver.HeldByToken), byte(job.Consumed)}),
		"AS_POSTED":    string([]byte{byte(job.Posted), byte(job.Unclaimed), 0}),
		"AS_CONSUMED":  string([]byte{byte(job.ConsumedEvent), byte(job.Complete), byte(job.Consumed)}),
		"AS_FREE":      open + string(noOwner),
		"AS_OPEN":      open,
		"ENDLESS":      strings.Repeat("\xff", 8),
	}
	for name, text := range values {
		values[name] = luaText(text)
	}
	return values
}
