package index

// EachName tells of each open job its name and whether it is claimed, in claim order. The
// lock is released between slices, as for a Page; visit is called under it and has to be
// quick. It ends early if more says no after a slice.
func (ix *Index) EachName(visit func(name string, claimed bool), more func() bool) {
	ix.each(func(r *row) { visit(ix.names.value(r.name), r.place == claimed) }, more)
}

// EachExtra tells of each open job that has an Extra what that is, as EachName does of names.
// It is not to be kept.
func (ix *Index) EachExtra(visit func(extra []byte), more func() bool) {
	ix.each(func(r *row) {
		if r.rare == 0 {
			return
		}
		if extra := ix.rares.at(r.rare).extra; len(extra) > 0 {
			visit(extra)
		}
	}, more)
}

func (ix *Index) each(visit func(*row), more func() bool) {
	from, left := progress{}, true
	for left && more() {
		from, left = ix.eachPart(from, visit)
	}
}

func (ix *Index) eachPart(from progress, visit func(*row)) (next progress, more bool) {
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
		visit(r)
		return true
	})
	return next, more
}
