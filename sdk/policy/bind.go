package policy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
)

var brace = regexp.MustCompile(`\{([^{}]*)\}`)

// templates checks that what stands in braces is a parameter that can stand
// there.
func (d *Declared) templates(found *faults) {
	check := func(where, text string, listToo bool) {
		for _, m := range brace.FindAllStringSubmatch(text, -1) {
			i := slices.IndexFunc(d.base.Parameters, func(p Parameter) bool { return p.Name == m[1] })
			switch {
			case i < 0:
				found.add("%s: %q names no parameter", where, m[0])
			case d.base.Parameters[i].Type == StringParameter, listToo && d.base.Parameters[i].Type == ListParameter:
			default:
				found.add("%s: %q is a %s: want a string%s", where, m[0], d.base.Parameters[i].Type, map[bool]string{true: " or a list"}[listToo])
			}
		}
	}
	for i, l := range d.text.Labels {
		check(fmt.Sprintf("labels[%d]", i), l, true)
	}
	for i, l := range d.text.WorkerLabels {
		check(fmt.Sprintf("workerLabels[%d]", i), l, true)
	}
	for i, f := range d.text.Facts {
		check(fmt.Sprintf("facts[%d].path", i), f.Path, false)
	}
	check("counts", d.text.Counts, false)
	d.period(found)
	for _, p := range d.base.Parameters {
		if p.Required && p.Default != nil {
			found.add("parameters: %s is required and has a default", p.Name)
		}
	}
}

// period checks what says how long a period is: a duration, or a parameter that is one.
func (d *Declared) period(found *faults) {
	text := d.text.Period
	if text == "" {
		return
	}
	if name, ok := periodParameter(text); ok {
		if !slices.ContainsFunc(d.base.Parameters, func(p Parameter) bool { return p.Name == name && p.Type == DurationParameter }) {
			found.add("period: %.80q names no parameter that is a duration", text)
		}
		return
	}
	per, err := time.ParseDuration(text)
	if err != nil {
		found.add("period: %.40q: want a duration, or a parameter in braces", text)
	}
	d.base.Period = per
}

// periodParameter returns the name that stands in braces.
func periodParameter(text string) (name string, ok bool) {
	if name, ok = strings.CutPrefix(text, "{"); ok {
		name, ok = strings.CutSuffix(name, "}")
	}
	return name, ok
}

// Manifest returns what is declared, with the names of parameters where Bind puts
// their values, and without the facts.
func (d *Declared) Manifest() Manifest { return d.base }

// Bind sets parameters by name and returns the manifest for them, and their
// values in the manifest's order. A value may be what Value lists or what JSON
// and configurations have for it: text for a duration, a time or a zone.
func (d *Declared) Bind(set map[string]any) (Manifest, []Value, error) {
	m := d.base
	values := make([]Value, len(m.Parameters))
	var names []string
	for i, p := range m.Parameters {
		names = append(names, p.Name)
		values[i] = p.Default
		given, ok := set[p.Name]
		if !ok {
			if p.Required {
				return m, nil, job.Errorf(job.Invalid, "policy %s: the parameter %s has to be set (%s)", m.Name, p.Name, p.Type)
			}
			continue
		}
		v, err := ParseValue(p.Type, given)
		if err != nil {
			return m, nil, job.Errorf(job.Invalid, "policy %s: parameter %s: %s", m.Name, p.Name, err)
		}
		values[i] = v
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if slices.Contains(names, name) {
			continue
		}
		return m, nil, job.Errorf(job.Invalid, "policy %s: it has no parameter %q%s", m.Name, name, nearest.Among(name, names))
	}
	return m, values, d.fill(&m, values)
}

// fill writes the values of parameters where the manifest's texts name them.
func (d *Declared) fill(m *Manifest, values []Value) error {
	expand := func(text string) []string {
		texts := []string{text}
		for i, p := range m.Parameters {
			texts = expandOne(texts, "{"+p.Name+"}", values[i])
		}
		return texts
	}
	one := func(text string) string { return strings.Join(expand(text), "") }
	m.Labels, m.WorkerLabels, m.Facts = nil, nil, nil
	for _, l := range d.text.Labels {
		m.Labels = append(m.Labels, expand(l)...)
	}
	for _, l := range d.text.WorkerLabels {
		m.WorkerLabels = append(m.WorkerLabels, expand(l)...)
	}
	for _, f := range d.text.Facts {
		m.Facts = append(m.Facts, FactSpec{Name: f.Name, Path: one(f.Path), Type: f.Type})
	}
	m.Counts = one(d.text.Counts)
	if name, ok := periodParameter(d.text.Period); ok {
		i := slices.IndexFunc(m.Parameters, func(p Parameter) bool { return p.Name == name })
		if m.Period, _ = values[i].(time.Duration); m.Period == 0 {
			return job.Errorf(job.Invalid, "policy %s: parameter %s: 0s: want whole seconds, from 1s to %v", m.Name, name, MaxPeriod)
		}
	}
	return m.check()
}

// expandOne replaces a name in braces in each text; by each item of a list, or
// by nothing at all.
func expandOne(texts []string, name string, value Value) (filled []string) {
	for _, t := range texts {
		switch v := value.(type) {
		case string:
			filled = append(filled, strings.ReplaceAll(t, name, v))
		case []string:
			if !strings.Contains(t, name) {
				filled = append(filled, t)
				continue
			}
			for _, item := range v {
				filled = append(filled, strings.ReplaceAll(t, name, item))
			}
		case nil:
			if !strings.Contains(t, name) {
				filled = append(filled, t)
			}
		default:
			filled = append(filled, t)
		}
	}
	return filled
}

// check looks at what parameters may have made of a manifest.
func (m *Manifest) check() error {
	wrong := func(format string, args ...any) error {
		return job.Errorf(job.Invalid, "policy %s: %s", m.Name, fmt.Sprintf(format, args...))
	}
	for where, patterns := range map[string][]string{"labels": m.Labels, "workerLabels": m.WorkerLabels} {
		if len(patterns) > MaxPatterns {
			return wrong("%s: %d are too many: want at most %d", where, len(patterns), MaxPatterns)
		}
		for _, p := range patterns {
			if key := strings.TrimSuffix(p, "*"); p == "" || len(key) > job.MaxLabelKey || strings.Contains(key, "*") {
				return wrong(`%s: %.140q: want a label's key, or the beginning of one and "*"`, where, p)
			}
		}
	}
	for _, f := range m.Facts {
		if f.Path != "" && !strings.HasPrefix(f.Path, "/") || len(f.Path) > job.MaxName {
			return wrong(`fact %s: path %.140q: want a JSON pointer such as "/frames", of at most %d bytes`, f.Name, f.Path, job.MaxName)
		}
	}
	if err := m.checkPeriod(wrong); err != nil {
		return err
	}
	return m.checkCounts(wrong)
}

func (m *Manifest) checkPeriod(wrong func(format string, args ...any) error) error {
	switch {
	case m.Period == 0:
		return nil
	case m.Counts == "":
		return wrong("period: %v, without counts: want both", m.Period)
	case m.Period < time.Second || m.Period > MaxPeriod || m.Period%time.Second != 0:
		return wrong("period: %v: want whole seconds, from 1s to %v", m.Period, MaxPeriod)
	}
	return nil
}

func (m *Manifest) checkCounts(wrong func(format string, args ...any) error) error {
	kind, name, _ := strings.Cut(m.Counts, ":")
	switch {
	case m.Counts == "" || m.Counts == "name":
		return nil
	case kind == "label" && name != "" && !strings.Contains(name, "*"):
		return nil
	case kind == "fact" && slices.ContainsFunc(m.Facts, func(f FactSpec) bool { return f.Name == name }):
		return nil
	}
	return wrong(`counts: %.140q: want "label:KEY", "fact:NAME" of a declared fact, or "name"`, m.Counts)
}
