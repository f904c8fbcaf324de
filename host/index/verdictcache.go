package index

// verdictCache is what the judges of the classes have said of one row: may a worker of
// the class have the job? It has a bit for each slot of the class table, so that the
// verdicts of 64 classes cost a row 16 bytes and no pointer. It holds for one version of
// the job: a row that changes forgets all, and gets another turn, so that verdicts
// which are still under way for the old version are dropped (see ref). A slot that goes to
// another class is forgotten row by row (see Index.wipe). What is missing waits among the
// pendingVerdicts. Index.mu guards it.
type verdictCache struct {
	known   uint64 // by slot: the judge has seen this version
	allowed uint64 // of those: a worker of the class may have the job
}

// has reports whether the judge of a slot has said anything.
func (v *verdictCache) has(slot int) bool { return v.known&(1<<slot) != 0 }

// allows reports whether a worker of the slot's class may have the job.
func (v *verdictCache) allows(slot int) bool { return v.allowed&(1<<slot) != 0 }

// lacks reports whether any of these slots has said nothing.
func (v *verdictCache) lacks(slots uint64) bool { return slots&^v.known != 0 }

// keep notes what the judge of a slot says.
func (v *verdictCache) keep(slot int, allowed bool) {
	v.known |= 1 << slot
	if allowed {
		v.allowed |= 1 << slot
	}
}

// forget drops what a slot has said.
func (v *verdictCache) forget(slot int) {
	v.known &^= 1 << slot
	v.allowed &^= 1 << slot
}
