package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
	"github.com/boardd/boardd/sdk/policy"
)

// policyTable is what policy test reads: cases, and what is to come of them.
type policyTable struct {
	Params map[string]any `json:"params"`
	Cases  []policyCase   `json:"cases"`
}

type policyCase struct {
	Name     string            `json:"name"`
	Now      time.Time         `json:"now"`
	Worker   map[string]string `json:"worker"`
	Jobs     []caseJob         `json:"jobs"`
	Verdicts []string          `json:"verdicts"` // of each job: allow, or deny or defer with the reason after a colon
	Order    []string          `json:"order"`    // the jobs' names, the first one first
	Fuel     int64             `json:"fuel"`     // at most, for all calls of the case; 0: any amount
}

type caseJob struct {
	Name        string            `json:"name"`
	Priority    string            `json:"priority"`
	Labels      map[string]string `json:"labels"`
	Details     json.RawMessage   `json:"details"`
	CreatedAt   time.Time         `json:"createdAt"`
	Attempt     int32             `json:"attempt"`
	MaxAttempts int32             `json:"maxAttempts"`
}

func readCases(name string) (*policyTable, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	d.UseNumber()
	t := &policyTable{}
	if err := d.Decode(t); err != nil {
		return nil, wrongCases(text, err)
	}
	if len(t.Cases) == 0 {
		return nil, fmt.Errorf("cases: want at least one")
	}
	return t, nil
}

// caseFields are the fields of a table, wherever in it.
var caseFields = []string{
	"params", "cases", "name", "now", "worker", "jobs", "verdicts", "order", "fuel", "priority", "labels", "details",
	"createdAt", "attempt", "maxAttempts",
}

// wrongCases says what is wrong with the text of a table, and in which line, if that is sure.
func wrongCases(text []byte, err error) error {
	problem, at := strings.TrimPrefix(err.Error(), "json: "), int64(-1)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = syntax.Offset
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at = kind.Offset
	}
	if quoted, ok := strings.CutPrefix(problem, "unknown field "); ok {
		name := strings.Trim(quoted, `"`)
		problem = "there is no field " + quoted + nearest.Among(name, caseFields)
		if bytes.Count(text, []byte(quoted)) == 1 {
			at = int64(bytes.Index(text, []byte(quoted)))
		}
	}
	if at < 0 || at > int64(len(text)) {
		return errors.New(problem)
	}
	return fmt.Errorf("line %d: %s", 1+bytes.Count(text[:at], []byte("\n")), problem)
}

// problems runs one case and says what came out differently, and what fuel it took
// if used tells.
func (c *policyCase) problems(ctx context.Context, rule policy.Policy, used func() int64) (fuel int64, wrong []string) {
	m := rule.Manifest()
	batch, err := c.batch(&m)
	if err != nil {
		return 0, []string{err.Error()}
	}
	if used == nil {
		used = func() int64 { return 0 }
	}
	if len(c.Verdicts) > 0 {
		got := make([]policy.Verdict, len(batch.Jobs))
		if err := rule.Eligible(ctx, batch, got); err != nil {
			return 0, []string{err.Error()}
		}
		fuel += used()
		wrong = append(wrong, c.compareVerdicts(&m, got)...)
	}
	if len(c.Order) > 0 {
		scores := make([]int64, len(batch.Jobs))
		if err := rule.Score(ctx, batch, scores); err != nil {
			return fuel, append(wrong, err.Error())
		}
		fuel += used()
		if got := inOrder(batch.Jobs, scores); !slices.Equal(got, c.Order) {
			wrong = append(wrong, fmt.Sprintf("the order is %s, want %s", strings.Join(got, " "), strings.Join(c.Order, " ")))
		}
	}
	if c.Fuel > 0 && fuel > c.Fuel {
		wrong = append(wrong, fmt.Sprintf("it used %d fuel, want at most %d", fuel, c.Fuel))
	}
	return fuel, wrong
}

func (c *policyCase) compareVerdicts(m *policy.Manifest, got []policy.Verdict) (wrong []string) {
	if len(c.Verdicts) != len(got) {
		return []string{fmt.Sprintf("%d verdicts for %d jobs", len(c.Verdicts), len(got))}
	}
	for i, v := range got {
		text := []string{policy.Deny: "deny", policy.Allow: "allow", policy.Defer: "defer"}[v.Decision]
		full := text
		if v.Decision != policy.Allow && v.Reason < len(m.Reasons) {
			full += ": " + m.Reasons[v.Reason]
		}
		if want := c.Verdicts[i]; want != text && want != full {
			wrong = append(wrong, fmt.Sprintf("%s: %s, want %s", c.Jobs[i].Name, full, want))
		}
	}
	return wrong
}

// inOrder returns the names of jobs as a board orders them.
func inOrder(jobs []policy.Job, scores []int64) []string {
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(jobs[a].Priority, jobs[b].Priority), jobs[a].CreatedAt.Compare(jobs[b].CreatedAt))
	})
	names := make([]string, len(jobs))
	for i, at := range order {
		names[i] = jobs[at].Name
	}
	return names
}

// batch is what the case shows the policy: no more than its manifest names.
func (c *policyCase) batch(m *policy.Manifest) (*policy.Batch, error) {
	batch := &policy.Batch{}
	if m.ByTime {
		batch.Now = c.Now.Truncate(cmp.Or(m.Tick, policy.DefaultTick))
	}
	if m.ByWorker {
		batch.Worker = seenLabels(c.Worker, m.WorkerLabels)
	}
	for i, j := range c.Jobs {
		made := policy.Job{
			ID: job.ID{15: byte(i)}, Name: j.Name, Priority: job.Normal, Labels: seenLabels(j.Labels, m.Labels), CreatedAt: j.CreatedAt,
			Sequence: uint64(i), Attempt: j.Attempt, MaxAttempts: j.MaxAttempts, Facts: policy.Facts(j.Details, m.Facts),
		}
		if j.Priority != "" {
			var ok bool
			if made.Priority, ok = job.ParsePriority(strings.ToUpper(j.Priority)); !ok {
				return nil, fmt.Errorf("%s: priority: %q: want VERY_HIGH, HIGH, NORMAL, LOW or VERY_LOW", j.Name, j.Priority)
			}
		}
		batch.Jobs = append(batch.Jobs, made)
	}
	return batch, nil
}

func seenLabels(labels map[string]string, patterns []string) (list []job.Label) {
	for _, k := range sortedKeys(labels) {
		if policy.Sees(patterns, k) {
			list = append(list, job.Label{Key: k, Value: labels[k]})
		}
	}
	return list
}
