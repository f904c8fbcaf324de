package index

// EachName tells of each open job its name and whether it is claimed, in claim order. The
// lock is released between slices, as for a Page; visit is called under it and has to be
// quick. It ends early if more says no after a slice.
func (ix *Index) EachName(visit func(name string, claimed bool), more func() bool) {
	from, left := progress{}, true
	for left && more() {
		from, left = ix.eachNamePart(from, visit)
	}
}

func (ix *Index) eachNamePart(from progress, visit func(name string, claimed bool)) (next progress, more bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	visits := pageSlice
	next = from
	ix.after(ix.all, from, func(_ uint32, r *row) bool {
		if visits == 0 {
			more = true
			return false
		}
		visits--
		next = progress{true, r.Order}
		visit(ix.names.value(r.name), r.place == claimed)
		return true
	})
	return next, more
}
