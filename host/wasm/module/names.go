package module

import "unicode/utf8"

// Name returns what the module's name section calls a function, or "".
func (m *Module) Name(function uint32) string {
	if m.names == nil {
		m.names = map[uint32]string{}
		m.readNames()
	}
	return m.names[function]
}

// readNames reads the names of functions. Names are for people: where the
// section is damaged, what was read until there is good enough.
func (m *Module) readNames() {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(*Refusal); !ok {
				panic(p)
			}
		}
	}()
	c := cursor{bytes: m.Names, end: len(m.Names), function: -1}
	for c.at < c.end {
		kind, size := c.byte(), int(c.uint())
		content := c.skip(size)
		if kind != 1 {
			continue
		}
		names := cursor{bytes: content, end: len(content), function: -1}
		for range names.count("names", MaxFunctions, 2, "") {
			index := names.uint()
			if name := string(names.skip(int(names.uint()))); utf8.ValidString(name) && len(name) <= MaxName {
				m.names[index] = name
			}
		}
		return
	}
}
