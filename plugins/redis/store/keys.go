package store

import (
	"strings"

	"github.com/boardd/boardd/sdk/job"
)

// keys are the names of everything that one board has in Redis. TaskFlow's come
// first in each list; ours begin with boardd, where TaskFlow never looks.
type keys struct {
	prefix string // of every key: the namespace and a colon, or nothing

	// TaskFlow's.
	listings string // hash: uuid to posting
	trash    string // hash: uuid to posting
	sequence string // the number of the last post

	// Ours.
	head      string // hash: generation, id, server, created, position, epoch, claimed, open, posts, settled, finals, bytes
	jobs      string // hash: uuid to meta, of jobs on the board and in the trash
	stamps    string // hash: what is remembered of ops, by job and token or request
	order     string // list: of stamps and tombstones, oldest first
	ended     string // hash: uuid to what is left of a job that is Complete
	endedBy   string // sorted set: those, by position
	finals    string // hash: uuid to final record
	finalsBy  string // sorted set: those, by position
	finalsDue string // sorted set: those, by the time that they are kept until
	limits    string // hash: limit to what it stands at
	trashBy   string // sorted set: trashed jobs, by position
	events    string // stream: what changed
	taken     string // hash: key to what is kept of it, see lua/keys.lua
	groups    string // hash: where a group counts jobs to how many, see lua/limits.lua
	searcher  string // which server searches the board for other programs' changes
	wake      string // channel: the position, whenever something changed
}

func keysOf(prefix string) keys {
	ours := func(name string) string { return prefix + "boardd:" + name }
	return keys{
		prefix: prefix, listings: prefix + "listings", trash: prefix + "trash", sequence: prefix + "sequence",
		head: ours("head"), jobs: ours("jobs"), stamps: ours("stamps"), order: ours("order"),
		ended: ours("ended"), endedBy: ours("ended.by"), finals: ours("finals"), finalsBy: ours("finals.by"),
		finalsDue: ours("finals.due"), limits: ours("limits"), trashBy: ours("trash.by"), events: ours("events"), taken: ours("keys"), groups: ours("groups"),
		searcher: ours("searcher"), wake: ours("wake"),
	}
}

// script returns the keys as the script takes them.
func (k *keys) script() []string {
	return []string{
		k.head, k.jobs, k.listings, k.trash, k.sequence, k.stamps, k.order, k.ended, k.endedBy,
		k.finals, k.finalsBy, k.finalsDue, k.limits, k.trashBy, k.events, k.taken, k.groups,
	}
}

// ours returns every key that is only ours and not one job's.
func (k *keys) ours() []string {
	return []string{
		k.head, k.jobs, k.stamps, k.order, k.ended, k.endedBy, k.finals, k.finalsBy, k.finalsDue, k.limits, k.trashBy, k.events, k.taken, k.groups, k.searcher,
	}
}

func (k *keys) owner(id string) string    { return k.prefix + id + ownedSuffix }
func (k *keys) modified(id string) string { return k.prefix + id + modifiedSuffix }
func (k *keys) attached(id string) string { return k.prefix + "boardd:attached." + id }

// job returns the keys of one job.
func (k *keys) job(id string) []string { return []string{k.owner(id), k.modified(id), k.attached(id)} }

// hashTag reports whether Redis Cluster keeps all keys with this prefix in one
// place.
func hashTag(prefix string) bool {
	_, rest, ok := strings.Cut(prefix, "{")
	tag, _, closed := strings.Cut(rest, "}")
	return ok && closed && tag != ""
}

// jobNamed returns the job of which a name is the uuid, as TaskFlow and boardd write it;
// false: it is no such name.
func jobNamed(name string) (job.ID, bool) {
	id, err := job.ParseID(name)
	return id, err == nil && id.String() == name
}

func texts(ids []job.ID) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = id.String()
	}
	return list
}
