package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/boardd/boardd/sdk/nearest"
)

// named returns the blocks of a type that carry one name each.
func (s *section) named(kind string) []*section {
	var list []*section
	for _, block := range s.take(kind) {
		if len(block.Labels) != 1 {
			s.problem(s.start(block.TypeRange), `want one name after %s: %s "NAME" { ... }`, kind, kind)
			continue
		}
		inner := s.inner(block, fmt.Sprintf("%s %q", kind, clip(block.Labels[0])))
		inner.label = block.Labels[0]
		if err := checkName(inner.label); err != nil {
			s.problem(s.start(block.LabelRanges[0]), "%s: %v", kind, err)
			continue
		}
		list = append(list, inner)
	}
	return list
}

// single returns the one block of a type that carries no name, or nil.
func (s *section) single(kind string) *section {
	var only *section
	for _, block := range s.take(kind) {
		switch {
		case len(block.Labels) > 0:
			s.problem(s.start(block.LabelRanges[0]), "%s takes no name: %s { ... }", kind, kind)
		case only != nil:
			s.problem(s.start(block.TypeRange), "%s is given twice, the first time at %s", kind, only.at)
		default:
			only = s.inner(block, kind)
		}
	}
	return only
}

// several returns the blocks of a type that carry no name and may be repeated.
func (s *section) several(kind string) []*section {
	var list []*section
	for _, block := range s.take(kind) {
		if len(block.Labels) > 0 {
			s.problem(s.start(block.LabelRanges[0]), "%s takes no name: %s { ... }", kind, kind)
			continue
		}
		list = append(list, s.inner(block, fmt.Sprintf("%s %d", kind, len(list)+1)))
	}
	return list
}

func (s *section) take(kind string) []*hclsyntax.Block {
	s.blocks = append(s.blocks, kind)
	return slices.DeleteFunc(slices.Clone(s.body.Blocks), func(b *hclsyntax.Block) bool { return b.Type != kind })
}

func (s *section) inner(block *hclsyntax.Block, title string) *section {
	if s.title != "" {
		title = s.title + ": " + title
	}
	return &section{
		loader: s.loader, file: s.file, title: title,
		at: s.start(block.TypeRange), body: block.Body, places: map[string]Place{}, bad: map[string]bool{},
	}
}

// close reports what nobody asked for, and keeps the places of the rest for
// Config.Locate: under the kind and name given, and within these under a path.
func (s *section) close(kind, name string, path ...string) {
	if s.title != "" {
		s.loader.config.places[placeKey(kind, name, path)] = s.at
	}
	for setting, at := range s.places {
		s.loader.config.places[placeKey(kind, name, append(slices.Clone(path), setting))] = at
	}
	known := slices.Concat(s.settings, s.blocks)
	for _, name := range slices.Sorted(maps.Keys(s.body.Attributes)) {
		at := s.start(s.body.Attributes[name].NameRange)
		switch {
		case slices.Contains(s.settings, name):
		case slices.Contains(s.blocks, name):
			s.problem(at, "%s is a block: write %s { ... } without the equals sign", name, name)
		default:
			s.problem(at, "there is no setting %q%s", clip(name), nearest.Hint(name, known))
		}
	}
	for _, block := range s.body.Blocks {
		at := s.start(block.TypeRange)
		switch {
		case slices.Contains(s.blocks, block.Type):
		case slices.Contains(s.settings, block.Type):
			s.problem(at, "%s is a setting: write %s = ...", block.Type, block.Type)
		default:
			s.problem(at, "there is no block %q%s", clip(block.Type), nearest.Hint(block.Type, known))
		}
	}
}
