package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
)

// Limits of a manifest.
const (
	MaxManifest   = 64 << 10 // bytes of its JSON
	MaxPatterns   = 64       // labels or worker labels, after parameters were filled in
	MaxFacts      = 32       //
	MaxParameters = 32       //
	MaxReasons    = 256      //
	MaxReason     = 256      // bytes of one reason
	MaxPolicyName = 128      // bytes of a name or a version
	MaxTick       = 24 * time.Hour
)

// Declared is a manifest as its author wrote it: its texts may name parameters in
// braces, "label:{by}". Bind fills them in.
type Declared struct {
	text document
	base Manifest
}

// document is the manifest's JSON.
type document struct {
	Name         string      `json:"name"`
	Version      string      `json:"version"`
	ABI          int         `json:"abi"`
	Kinds        []string    `json:"kinds"`
	Tick         string      `json:"tick"`
	Labels       []string    `json:"labels"`
	WorkerLabels []string    `json:"workerLabels"`
	Facts        []fact      `json:"facts"`
	Counts       string      `json:"counts"`
	Period       string      `json:"period"`
	Parameters   []parameter `json:"parameters"`
	Reasons      []string    `json:"reasons"`
	OnError      string      `json:"onError"`
	License      string      `json:"license"`
	Source       string      `json:"source"`
}

type fact struct {
	Name string   `json:"name"`
	Path string   `json:"path"`
	Type FactType `json:"type"`
}

type parameter struct {
	Name     string        `json:"name"`
	Type     ParameterType `json:"type"`
	Default  any           `json:"default"`
	Required bool          `json:"required"`
	Help     string        `json:"help"`
}

var (
	kinds          = []string{"eligibility", "ordering", "explain"}
	factTypes      = []FactType{IntFact, FloatFact, BoolFact, StringFact, TimeFact}
	parameterTypes = []ParameterType{
		IntParameter, FloatParameter, BoolParameter, StringParameter, DurationParameter,
		TimeParameter, ListParameter, MapParameter, ZoneParameter,
	}
	policyName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)*$`)
	plainName  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
)

// ParseManifest reads a manifest and reports everything that is wrong with it.
func ParseManifest(text []byte) (*Declared, error) {
	if len(text) > MaxManifest {
		return nil, job.Errorf(job.Invalid, "the manifest has %d bytes: want at most %d", len(text), MaxManifest)
	}
	var doc document
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	if err := decoder.Decode(&doc); err != nil {
		return nil, job.Errorf(job.Invalid, "the manifest: %s", readable(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, job.Errorf(job.Invalid, "the manifest: something follows after its JSON object")
	}
	d := &Declared{text: doc}
	var found faults
	d.head(&found)
	d.inputs(&found)
	d.parameters(&found)
	d.outputs(&found)
	if len(found) == 0 {
		d.templates(&found)
	}
	if len(found) > 0 {
		return nil, job.Errorf(job.Invalid, "the manifest: %s", strings.Join(found, "; "))
	}
	return d, nil
}

// readable says what a JSON error means in words of the manifest.
func readable(err error) string {
	text := strings.TrimPrefix(err.Error(), "json: ")
	name, ok := strings.CutPrefix(text, "unknown field ")
	if !ok {
		return text
	}
	known := []string{
		"name", "version", "abi", "kinds", "tick", "labels", "workerLabels", "facts", "counts", "period", "parameters",
		"reasons", "onError", "license", "source", "path", "type", "default", "required", "help",
	}
	if near := nearest.Name(strings.Trim(name, `"`), known); near != "" {
		return fmt.Sprintf("no field is called %s; did you mean %q?", name, near)
	}
	return "no field is called " + name
}

// faults collects what is wrong.
type faults []string

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

func (d *Declared) head(found *faults) {
	t := &d.text
	if !policyName.MatchString(t.Name) || len(t.Name) > MaxPolicyName {
		found.add("name: %.140q: want up to %d small letters, digits, dots, hyphens and underscores, in parts divided by slashes", t.Name, MaxPolicyName)
	}
	if t.Version == "" || len(t.Version) > MaxPolicyName {
		found.add("version: %d bytes: want 1 to %d", len(t.Version), MaxPolicyName)
	}
	if t.ABI != 1 {
		found.add("abi: %d: this boardd knows version 1", t.ABI)
	}
	d.base = Manifest{Name: t.Name, Version: t.Version, License: t.License, Source: t.Source}
	for i, k := range t.Kinds {
		switch k {
		case "eligibility":
			d.base.Eligibility = true
		case "ordering":
			d.base.Ordering = true
		case "explain":
			d.base.Explains = true
		default:
			found.add("kinds[%d]: %.40q: want one of %s", i, k, strings.Join(kinds, ", "))
		}
	}
	if !d.base.Eligibility && !d.base.Ordering && t.Counts == "" {
		found.add(`kinds: want "eligibility" or "ordering", or a policy with counts`)
	}
}

func (d *Declared) inputs(found *faults) {
	t := &d.text
	if t.Tick != "" {
		tick, err := time.ParseDuration(t.Tick)
		if err != nil || tick < MinTick || tick > MaxTick {
			found.add("tick: %.40q: want a duration from %s to %s", t.Tick, MinTick, MaxTick)
		}
		d.base.ByTime, d.base.Tick = true, tick
	}
	d.base.ByWorker = len(t.WorkerLabels) > 0
	d.base.Labels, d.base.WorkerLabels, d.base.Counts = t.Labels, t.WorkerLabels, t.Counts
	if len(t.Facts) > MaxFacts {
		found.add("facts: %d are too many: want at most %d", len(t.Facts), MaxFacts)
	}
	var names []string
	for i, f := range t.Facts {
		switch {
		case !plainName.MatchString(f.Name):
			found.add("facts[%d].name: %.70q: want small letters, digits and underscores, 64 at most", i, f.Name)
		case slices.Contains(names, f.Name):
			found.add("facts[%d].name: %q stands there twice", i, f.Name)
		case !slices.Contains(factTypes, f.Type):
			found.add("facts[%d].type: %.40q: want one of %s", i, f.Type, list(factTypes))
		}
		names = append(names, f.Name)
	}
}

func list[T ~string](of []T) string {
	texts := make([]string, len(of))
	for i, v := range of {
		texts[i] = string(v)
	}
	return strings.Join(texts, ", ")
}

func (d *Declared) parameters(found *faults) {
	if len(d.text.Parameters) > MaxParameters {
		found.add("parameters: %d are too many: want at most %d", len(d.text.Parameters), MaxParameters)
	}
	var names []string
	for i, p := range d.text.Parameters {
		switch {
		case !plainName.MatchString(p.Name):
			found.add("parameters[%d].name: %.70q: want small letters, digits and underscores, 64 at most", i, p.Name)
			continue
		case slices.Contains(names, p.Name):
			found.add("parameters[%d].name: %q stands there twice", i, p.Name)
		case !slices.Contains(parameterTypes, p.Type):
			found.add("parameters[%d].type: %.40q: want one of %s", i, p.Type, list(parameterTypes))
			continue
		}
		names = append(names, p.Name)
		value, err := ParseValue(p.Type, p.Default)
		if err != nil {
			found.add("parameters[%d].default: %s", i, err)
		}
		d.base.Parameters = append(d.base.Parameters, Parameter{Name: p.Name, Type: p.Type, Default: value, Required: p.Required, Help: p.Help})
	}
}

func (d *Declared) outputs(found *faults) {
	t := &d.text
	if len(t.Reasons) > MaxReasons {
		found.add("reasons: %d are too many: want at most %d", len(t.Reasons), MaxReasons)
	}
	for i, r := range t.Reasons {
		if r == "" || len(r) > MaxReason {
			found.add("reasons[%d]: %d bytes: want 1 to %d", i, len(r), MaxReason)
		}
	}
	d.base.Reasons = t.Reasons
	switch t.OnError {
	case "", "deny":
	case "allow":
		d.base.OnError = OnErrorAllow
	default:
		found.add("onError: %.40q: want deny or allow", t.OnError)
	}
}
