package policy

import (
	"strings"
	"time"
)

// Manifest declares a policy.
type Manifest struct {
	Name        string
	Version     string
	Eligibility bool // Eligible may be called
	Ordering    bool // Score may be called
	Explains    bool // Explain may be called
	ByTime      bool // answers depend on Batch.Now
	ByWorker    bool // answers depend on Batch.Worker

	// Tick is how finely a policy by time sees the time, so that several servers
	// agree: Batch.Now is when the present tick began, or the last time since then
	// that a verdict of the policy named as its Until. Zero is DefaultTick.
	Tick time.Duration

	// WorkerLabels and Labels name the labels of the worker and of the job that
	// the policy reads; it is shown no other. "gpu.*" stands for every key that
	// begins with "gpu.", "*" for all.
	WorkerLabels []string
	Labels       []string

	// Facts are the values in a job's details that the policy reads. The host
	// finds them once, when the job is posted.
	Facts []FactSpec

	// Counts says by what a Ranker groups jobs: "label:KEY", "fact:NAME" or
	// "name". Empty: it ranks nothing.
	Counts string

	// Period, if not 0, bounds how often jobs of a key are claimed, in place of how many run:
	// Key.Running is how many were claimed in the present period, and Rank.Most how many
	// may be in each. Periods begin at whole multiples of it since 1970.
	Period time.Duration

	// Parameters are what an operator may set.
	Parameters []Parameter

	// Reasons are the texts that Verdict.Reason points into.
	Reasons []string

	// OnError is the author's advice on what becomes of jobs that the policy was
	// asked about when it failed. A board's own setting decides.
	OnError OnError

	License string
	Source  string // where it is built from
}

// MaxPeriod is the longest Period. It is whole seconds.
const MaxPeriod = 31 * 24 * time.Hour

// DefaultTick is the tick of a policy by time that names none. MinTick is the
// finest: a board asks anew about its jobs each time it passes.
const (
	DefaultTick = 10 * time.Second
	MinTick     = time.Second
)

// OnError is what happens to jobs whose eligibility could not be decided.
type OnError uint8

// The ways.
const (
	OnErrorDeny OnError = iota
	OnErrorAllow
)

// Sees reports whether a list of label keys, as a manifest has it, names a key.
func Sees(patterns []string, key string) bool {
	for _, p := range patterns {
		if prefix, open := strings.CutSuffix(p, "*"); p == key || open && strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// FactSpec names a value in a job's details.
type FactSpec struct {
	Name string // what reasons and counts call it
	Path string // a JSON pointer (RFC 6901)
	Type FactType
}

// FactType says what a fact is. A value of another type counts as absent.
type FactType string

// The types of facts.
const (
	IntFact    FactType = "int"
	FloatFact  FactType = "float"
	BoolFact   FactType = "bool"
	StringFact FactType = "string"
	TimeFact   FactType = "time" // text as RFC 3339 has it
)

// Fact is a value in a job's details: int64, float64, bool, string or time.Time;
// nil if it is absent.
type Fact = any

// Parameter is something that an operator may set.
type Parameter struct {
	Name     string
	Type     ParameterType
	Default  Value // zero: absent unless set
	Required bool
	Help     string
}

// ParameterType says what may be set.
type ParameterType string

// The types of parameters.
const (
	IntParameter      ParameterType = "int"
	FloatParameter    ParameterType = "float"
	BoolParameter     ParameterType = "bool"
	StringParameter   ParameterType = "string"
	DurationParameter ParameterType = "duration" // "90s", "2h"
	TimeParameter     ParameterType = "time"     // as RFC 3339 has it
	ListParameter     ParameterType = "list"     // of texts
	MapParameter      ParameterType = "map"      // of text to text
	ZoneParameter     ParameterType = "zone"     // "Europe/Berlin"; the guest gets its steps
)

// Value is what a parameter is set to: nil, bool, int64, float64, string,
// time.Duration, time.Time, []string, map[string]string or *time.Location.
type Value = any
