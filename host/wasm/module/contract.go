package module

import "github.com/boardd/boardd/sdk/policy/abi"

// contract are the types of the exports that abi.md names.
var contract = map[string]FuncType{
	abi.ExportMarker:     signature(":"),
	abi.ExportInitialize: signature(":"),
	abi.ExportAlloc:      signature("i:i"),
	abi.ExportConfigure:  signature("ii:i"),
	abi.ExportEligible:   signature("ii:i"),
	abi.ExportScore:      signature("ii:i"),
	abi.ExportRankKeys:   signature("ii:i"),
	abi.ExportExplain:    signature("ii:i"),
}

// Contract checks that a module exports what a policy has to, and the functions
// for the given calls. Its errors are *Refusal.
func (m *Module) Contract(calls ...abi.Call) error {
	refuse := func(what, mend string) error { return &Refusal{Function: -1, What: what, Mend: mend} }
	memory := false
	for _, e := range m.Exports {
		if e.Name == abi.ExportMemory && e.Kind == ExportMemory {
			memory = true
		}
		want, ok := contract[e.Name]
		if !ok || e.Name == abi.ExportMemory {
			continue
		}
		if e.Kind != ExportFunction {
			return refuse("the export "+e.Name+" is no function", "")
		}
		if got := m.TypeOf(e.Index); !got.Equal(want) {
			return refuse("the export "+e.Name+" is of type "+got.String()+": want "+want.String(), "")
		}
	}
	if !memory {
		return refuse("the module exports no memory named "+abi.ExportMemory, "")
	}
	needed := []string{abi.ExportMarker, abi.ExportAlloc}
	for _, c := range calls {
		needed = append(needed, c.Export())
	}
	for _, name := range needed {
		if _, ok := m.Export(name); ok {
			continue
		}
		if name == abi.ExportMarker {
			return refuse("the module does not export "+name+", so it is no policy of a version that is known", "include boardd_policy.h, or import sdk/policy/guest")
		}
		return refuse("the module does not export "+name, "define it, or take it out of the manifest")
	}
	return nil
}
