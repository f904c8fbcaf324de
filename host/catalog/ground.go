package catalog

import "cmp"

// ground holds places by the areas that they are made of, so that a place that overlaps
// is found without a look at all others. Boards may share an area with each other, but
// not with a board that has it as its own.
type ground struct{ own, shared layer }

func newGround() *ground { return &ground{newLayer(), newLayer()} }

// add puts a board on the ground.
func (g *ground) add(l Location, use Use) {
	for _, area := range l.own {
		g.own.add(area, use)
	}
	for _, area := range l.shared {
		g.shared.add(area, use)
	}
}

// other returns another board whose places overlap with a location.
func (g *ground) other(l Location, use *Use) *Use {
	for _, area := range l.own {
		if found := cmp.Or(g.own.other(area, use), g.shared.other(area, use)); found != nil {
			return found
		}
	}
	for _, area := range l.shared {
		if found := g.own.other(area, use); found != nil {
			return found
		}
	}
	return nil
}

// layer holds boards by the areas that they have, and by the areas around these. It keeps
// two boards of each area, which are enough to find one other than a given board.
type layer struct{ at, below map[string][]Use }

func newLayer() layer { return layer{map[string][]Use{}, map[string][]Use{}} }

func (y layer) add(area string, use Use) {
	keep := func(in map[string][]Use, area string) {
		if known := in[area]; len(known) == 0 || len(known) == 1 && !known[0].same(&use) {
			in[area] = append(known, use)
		}
	}
	keep(y.at, area)
	for above := range enclosing(area) {
		keep(y.below, above)
	}
}

// other returns another board that has an area, one in it or one around it.
func (y layer) other(area string, use *Use) *Use {
	look := func(list []Use) *Use {
		for i := range list {
			if !list[i].same(use) {
				return &list[i]
			}
		}
		return nil
	}
	if found := cmp.Or(look(y.at[area]), look(y.below[area])); found != nil {
		return found
	}
	for above := range enclosing(area) {
		if found := look(y.at[above]); found != nil {
			return found
		}
	}
	return nil
}
