package audit

import (
	"maps"
	"slices"
)

// Verifier checks the logs of several servers, each by itself and against what was
// published of it and what the others have seen of it. The zero value is ready.
type Verifier struct {
	logs map[string]*verified // by host
	seen []sighting
}

// verified is one host's log.
type verified struct {
	trail

	hashes map[uint64]string
	flaws  map[Flaw]bool
}

// sighting is a head that was published, or that another host has seen.
type sighting struct {
	host string
	head Chain
}

func (v *Verifier) log(host string) *verified {
	if v.logs == nil {
		v.logs = map[string]*verified{}
	}
	if v.logs[host] == nil {
		v.logs[host] = &verified{hashes: map[uint64]string{}, flaws: map[Flaw]bool{}}
	}
	return v.logs[host]
}

// Add checks the next record of a host's log. The records of one log come in its
// order; the logs may come in any.
func (v *Verifier) Add(host string, r *Record) {
	v.Extend(host, r)
	if r.Call == HeadCall {
		v.seen = append(v.seen, sighting{host: r.Name, head: Chain{Sequence: uint64(max(0, r.Items)), Hash: r.Result}})
	}
}

// Extend is Add for records that came to a log after the others were read: what they
// say of the others may be newer than that.
func (v *Verifier) Extend(host string, r *Record) {
	l := v.log(host)
	l.add(r)
	if r.Host != host {
		l.note("record %d is of another host's log, %s", r.Sequence, r.Host)
	}
	l.hashes[r.Sequence] = r.Hash
}

// Signed tells the key with which a host signs its log. It comes before the records.
func (v *Verifier) Signed(host string, key Public) { v.log(host).key = key }

// Flawed tells of a line of a host's log that could not be read. To be told of it
// twice is as well.
func (v *Verifier) Flawed(host string, flaw Flaw) {
	if l := v.log(host); !l.flaws[flaw] {
		l.flaws[flaw] = true
		l.note("%s", flaw)
	}
}

// End returns how far a host's log has come; nowhere, if there is none.
func (v *Verifier) End(host string) Chain {
	if l := v.logs[host]; l != nil {
		return l.end
	}
	return Chain{}
}

// Published tells the head that was published of a host's log, which may have none.
func (v *Verifier) Published(host string, head Chain) {
	v.log(host)
	v.seen = append(v.seen, sighting{host: host, head: head})
}

// Records returns how many records there were.
func (v *Verifier) Records() int {
	n := 0
	for _, l := range v.logs {
		n += len(l.hashes)
	}
	return n
}

// Hosts returns the hosts whose logs were checked.
func (v *Verifier) Hosts() []string { return slices.Sorted(maps.Keys(v.logs)) }

// Findings returns what is wrong. The logs of hosts that are gone need not be there.
func (v *Verifier) Findings(gone []string) []string {
	var all []string
	for _, host := range v.Hosts() {
		for _, finding := range v.logs[host].finish() {
			all = append(all, "server "+host+": "+finding)
		}
	}
	told := map[string]bool{}
	for _, s := range v.seen {
		l := v.logs[s.host]
		problem := ""
		switch {
		case l != nil:
			problem = CheckHead(l.gone(), l.end, s.head, func(n uint64) string { return l.hashes[n] })
		case !slices.Contains(gone, s.host):
			problem = "it has an audit log, which was not among those that were checked"
		}
		if problem == "" || told[s.host+problem] {
			continue
		}
		told[s.host+problem] = true
		all = append(all, "server "+s.host+": "+problem)
	}
	return all
}
