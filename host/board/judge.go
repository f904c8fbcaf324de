package board

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// wish is what a claim call wants: which jobs, by whom.
type wish struct {
	*Board
	names  []string // sorted; none: any
	filter filter
	worker []job.Label // sorted by key; only those that the policies name
}

// wishOf checks the parts of a request that select jobs.
func (b *Board) wishOf(names []string, filterText string, worker []job.Label) (*wish, error) {
	if len(names) > MaxClaimNames {
		return nil, job.Errorf(job.Invalid, "names: %d are too many: want at most %d", len(names), MaxClaimNames)
	}
	for _, n := range names {
		if err := checkText("names", n, job.MaxName); err != nil {
			return nil, err
		}
	}
	f, err := parseFilter(filterText)
	if err != nil {
		return nil, err
	}
	worker, err = checkLabels("workerLabels", worker)
	if err != nil {
		return nil, err
	}
	w := &wish{Board: b, filter: f}
	if len(names) > 0 {
		w.names = slices.Compact(slices.Sorted(slices.Values(names)))
	}
	for _, l := range worker {
		if b.labelCounts(l.Key) {
			w.worker = append(w.worker, l)
		}
	}
	return w, nil
}

// labelCounts reports whether a policy looks at this label of a worker.
func (b *Board) labelCounts(key string) bool {
	return slices.ContainsFunc(b.spec.Eligibility, func(p policy.Policy) bool {
		m := p.Manifest()
		return m.ByWorker && slices.Contains(m.WorkerLabels, key)
	})
}

// any reports whether every job suits.
func (w *wish) any() bool {
	return len(w.names) == 0 && len(w.filter.terms) == 0 && len(w.spec.Eligibility) == 0
}

// class returns the key of the worker class: empty if every job suits.
func (w *wish) class() string {
	if w.any() {
		return ""
	}
	var b []byte
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(len(w.names)))
	for _, n := range w.names {
		text(n)
	}
	text(w.filter.text)
	for _, l := range w.worker {
		text(l.Key)
		text(l.Value)
	}
	if w.byTime() {
		b = binary.AppendVarint(b, time.Now().Unix()/int64(verdictAge/time.Second))
	}
	sum := sha256.Sum256(b)
	return string(sum[:16])
}

// verdictAge is for how long a verdict of a policy that looks at the time
// stands: as long as it is part of a class's key. What it allowed is asked about
// once more before it is claimed.
const verdictAge = 10 * time.Second

// byTime reports whether a policy looks at the time.
func (b *Board) byTime() bool {
	return slices.ContainsFunc(b.spec.Eligibility, func(p policy.Policy) bool { return p.Manifest().ByTime })
}

// fresh returns when the class's key has to be made anew; never is nil.
func (w *wish) fresh() (<-chan time.Time, func() bool) {
	if !w.byTime() {
		return nil, func() bool { return true }
	}
	now := time.Now()
	timer := time.NewTimer(now.Truncate(verdictAge).Add(verdictAge).Sub(now))
	return timer.C, timer.Stop
}

// judge is the index's question which jobs the class may have.
func (w *wish) judge(ctx context.Context, entries []*index.Entry, allowed []bool) error {
	var left []int
	for i, e := range entries {
		if w.named(e.Name) && (len(w.filter.terms) == 0 || w.filter.matches(subjectOf(e))) {
			left = append(left, i)
		}
	}
	left, err := w.judgeDetails(ctx, entries, left)
	if err != nil {
		return err
	}
	for _, p := range w.spec.Eligibility {
		if left, err = w.ask(ctx, p, entries, left); err != nil {
			w.metrics.PolicyErrors.Add(1)
			w.log.Warn("an eligibility policy failed: it denies what it was asked about", "policy", p.Manifest().Name, "error", err)
			return err
		}
	}
	for _, i := range left {
		allowed[i] = true
	}
	return nil
}

func (w *wish) named(name string) bool {
	if len(w.names) == 0 {
		return true
	}
	_, found := slices.BinarySearch(w.names, name)
	return found
}

func subjectOf(e *index.Entry) *subject {
	s := &subject{name: e.Name, priority: e.Priority, attempt: e.Attempt, createdAt: e.CreatedAt, labels: e.Labels}
	if e.Claim != nil {
		s.owner = e.Claim.Owner
	}
	return s
}

// judgeDetails keeps those of the entries whose details match.
func (w *wish) judgeDetails(ctx context.Context, entries []*index.Entry, left []int) ([]int, error) {
	if !w.filter.needsDetails() || len(left) == 0 {
		return left, nil
	}
	ids := make([]job.ID, len(left))
	for i, at := range left {
		ids[i] = entries[at].ID
	}
	kept := left[:0]
	err := w.eachDetails(ctx, ids, func(i int, details []byte) {
		if w.filter.matchesDetails(details) {
			kept = append(kept, left[i])
		}
	})
	return kept, err
}

// eachDetails reads the details of jobs and shows them one by one, in order:
// nil where they are no JSON.
func (b *Board) eachDetails(ctx context.Context, ids []job.ID, show func(i int, details []byte)) error {
	const most = 64 // at 4 MiB each in the worst case
	for from := 0; from < len(ids); from += most {
		part := ids[from:min(from+most, len(ids))]
		records, err := b.read(ctx, part, driver.Details)
		if err != nil {
			return err
		}
		for i := range records {
			details := records[i].Posting.Details
			if records[i].Posting.Encoding != job.JSON {
				details = nil
			}
			show(from+i, details)
		}
	}
	return nil
}

// ask keeps those of the entries that a policy allows.
func (w *wish) ask(ctx context.Context, p policy.Policy, entries []*index.Entry, left []int) ([]int, error) {
	m := p.Manifest()
	kept := left[:0]
	for from := 0; from < len(left); from += policy.MaxBatch {
		part := left[from:min(from+policy.MaxBatch, len(left))]
		batch := w.batch(&m, len(part))
		for _, at := range part {
			batch.Jobs = append(batch.Jobs, policyJob(&m, entries[at]))
		}
		verdicts := make([]policy.Verdict, len(part))
		if err := p.Eligible(ctx, batch, verdicts); err != nil {
			return nil, err
		}
		for i, v := range verdicts {
			if v.Decision == policy.Allow {
				kept = append(kept, part[i])
			}
		}
	}
	return kept, nil
}

// batch begins what a policy is shown: nothing that its manifest does not name.
func (w *wish) batch(m *policy.Manifest, size int) *policy.Batch {
	batch := &policy.Batch{Jobs: make([]policy.Job, 0, size)}
	if m.ByTime {
		batch.Now = time.Now().Truncate(policyTick)
	}
	if m.ByWorker {
		batch.Worker = onlyLabels(w.worker, m.WorkerLabels)
	}
	return batch
}

// policyTick is how finely policies see the time, so that hosts agree.
const policyTick = time.Second

func policyJob(m *policy.Manifest, e *index.Entry) policy.Job {
	return policy.Job{
		ID: e.ID, Name: e.Name, Priority: e.Priority, OperationPriority: e.OperationPriority, Labels: onlyLabels(e.Labels, m.Labels),
		CreatedAt: e.CreatedAt, NotBefore: e.NotBefore, Sequence: e.Sequence,
		Attempt: e.Attempt, MaxAttempts: e.MaxAttempts,
	}
}

// onlyLabels returns those labels whose keys are named.
func onlyLabels(labels []job.Label, keys []string) []job.Label {
	if len(keys) == 0 || len(labels) == 0 {
		return nil
	}
	kept := labels[:0:0]
	for _, l := range labels {
		if slices.Contains(keys, l.Key) {
			kept = append(kept, l)
		}
	}
	return kept
}

// objection says why one job is not for this worker: nil if it is. It asks the
// policies anew.
func (w *wish) objection(ctx context.Context, e *index.Entry) (*objection, error) {
	if !w.named(e.Name) {
		return &objection{verdict: "NOT_ELIGIBLE", reason: "its name is none of those asked for: " + cut(strings.Join(w.names, ", "), 200)}, nil
	}
	if !w.filter.matches(subjectOf(e)) {
		return &objection{verdict: "NOT_ELIGIBLE", reason: "the filter does not match it"}, nil
	}
	left, err := w.judgeDetails(ctx, []*index.Entry{e}, []int{0})
	if err != nil {
		return nil, err
	}
	if len(left) == 0 {
		return &objection{verdict: "NOT_ELIGIBLE", reason: "the filter does not match its details"}, nil
	}
	for _, p := range w.spec.Eligibility {
		m := p.Manifest()
		batch := w.batch(&m, 1)
		batch.Jobs = append(batch.Jobs, policyJob(&m, e))
		var verdict [1]policy.Verdict
		if err := p.Eligible(ctx, batch, verdict[:]); err != nil {
			w.metrics.PolicyErrors.Add(1)
			return &objection{verdict: "POLICY_ERROR", policy: m.Name, reason: "the policy " + m.Name + " failed, which denies: " + err.Error()}, nil //nolint:nilerr // the objection is the answer
		}
		if verdict[0].Decision != policy.Allow {
			return &objection{verdict: "NOT_ELIGIBLE", policy: m.Name, reason: verdictReason(&m, verdict[0])}, nil
		}
	}
	return nil, nil //nolint:nilnil // no objection
}

// objection is why a worker may not have a job.
type objection struct{ verdict, policy, reason string }

func verdictReason(m *policy.Manifest, v policy.Verdict) string {
	text := "denied by the policy " + m.Name
	if v.Decision == policy.Defer {
		text = "deferred by the policy " + m.Name
		if !v.Until.IsZero() {
			text += " until " + v.Until.UTC().Format(time.RFC3339)
		}
	}
	if v.Reason >= 0 && v.Reason < len(m.Reasons) {
		text += ": " + m.Reasons[v.Reason]
	}
	return text
}
