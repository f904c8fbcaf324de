package board

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board/filter"
	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/shorten"
)

// judge is what the index calls to learn which of the jobs the class may have.
func (w *selector) judge(ctx context.Context, entries []*index.Entry, allowed []bool) error {
	var left []int
	for i, e := range entries {
		if w.named(e.Name) && (w.filter.Empty() || w.filter.Matches(subjectOf(e, &w.filter))) {
			left = append(left, i)
		}
	}
	left, err := w.judgeDetails(ctx, entries, left)
	if err != nil {
		return err
	}
	for _, a := range w.rules.eligibility {
		if len(left) == 0 {
			break
		}
		if !w.rules.current() {
			return nil // nobody is of this class any more
		}
		if left, err = w.evaluate(ctx, a, entries, left); err != nil {
			w.board.log.WarnContext(ctx, "an eligibility policy failed: it denies what it was asked about", "policy", a.name(), "error", err)
			return err
		}
	}
	if s := w.rules.shadow; s != nil && s.manifest.Eligibility && !slices.ContainsFunc(w.rules.eligibility, s.replaces) {
		w.shadowVerdicts(ctx, entries, left, nil)
	}
	for _, i := range left {
		allowed[i] = true
	}
	w.scoreOwn(ctx, entries, left)
	return nil
}

// subjectOf is what a filter looks at of a job.
func subjectOf(e *index.Entry, of *filter.Filter) *filter.Subject {
	s := &filter.Subject{Name: e.Name, Priority: e.Priority, Attempt: e.Attempt, CreatedAt: e.CreatedAt, Labels: e.Labels}
	if e.Claim != nil {
		s.Owner = e.Claim.Owner
	}
	if of.NeedsRare() {
		r := rareOf(e.Extra)
		s.Unique, s.Batch = r.unique.Key, r.batch
	}
	return s
}

// judgeDetails keeps those of the entries whose details match.
func (w *selector) judgeDetails(ctx context.Context, entries []*index.Entry, left []int) ([]int, error) {
	if !w.filter.NeedsDetails() || len(left) == 0 {
		return left, nil
	}
	ids := make([]job.ID, len(left))
	for i, at := range left {
		ids[i] = entries[at].ID
	}
	kept := left[:0]
	err := w.board.eachDetails(ctx, ids, func(i int, _ *driver.Record, details []byte) {
		if w.filter.MatchesDetails(details) {
			kept = append(kept, left[i])
		}
	})
	return kept, err
}

// eachDetails reads the details of jobs and shows them one by one, in order:
// nil where they are no JSON.
func (b *Board) eachDetails(ctx context.Context, ids []job.ID, show func(i int, of *driver.Record, details []byte)) error {
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
			show(from+i, &records[i], details)
		}
	}
	return nil
}

// evaluate keeps those of the entries that a policy allows.
func (w *selector) evaluate(ctx context.Context, a *boundPolicy, entries []*index.Entry, left []int) ([]int, error) {
	kept := left[:0]
	for from := 0; from < len(left); from += policy.MaxBatch {
		part := left[from:min(from+policy.MaxBatch, len(left))]
		verdicts, err := w.verdicts(ctx, a, entries, part)
		switch {
		case err != nil && a.Lenient && ctx.Err() == nil:
			w.board.log.WarnContext(ctx, "an eligibility policy failed: it allows what it was asked about", "policy", a.name(), "error", err)
			kept = append(kept, part...)
			continue
		case err != nil:
			return nil, err
		}
		if w.rules.shadow.replaces(a) {
			w.shadowVerdicts(ctx, entries, part, verdicts) // before part is overwritten
		}
		for i, v := range verdicts {
			if v.Decision == policy.Allow {
				kept = append(kept, part[i])
			}
		}
	}
	return kept, nil
}

// verdicts asks one policy about at most a batch of jobs.
func (w *selector) verdicts(ctx context.Context, a *boundPolicy, entries []*index.Entry, which []int) ([]policy.Verdict, error) {
	if len(a.facts) > 0 {
		if err := w.board.need(ctx, w.rules.facts, entries, which); err != nil {
			return nil, err
		}
	}
	batch := a.batch(w.rules.facts, w.worker, entries, which)
	verdicts := make([]policy.Verdict, len(which))
	err := a.evaluate(ctx, func() error { return a.Policy.Eligible(ctx, batch, verdicts) })
	if err == nil && a.manifest.ByTime {
		for i := range verdicts {
			a.clock.Until(batch.Now, verdicts[i].Until)
		}
	}
	return verdicts, err
}

// batch is what a policy is shown: nothing that its manifest does not name.
func (a *boundPolicy) batch(f *facts, worker []job.Label, entries []*index.Entry, which []int) *policy.Batch {
	m := &a.manifest
	batch := &policy.Batch{Jobs: make([]policy.Job, 0, len(which))}
	if m.ByTime {
		batch.Now = a.clock.At(time.Now())
	}
	if m.ByWorker {
		batch.Worker = onlyLabels(worker, m.WorkerLabels)
	}
	for _, i := range which {
		j := policyJob(m, entries[i])
		j.Facts = f.pick(a, entries[i])
		batch.Jobs = append(batch.Jobs, j)
	}
	return batch
}

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
		if policy.Sees(keys, l.Key) {
			kept = append(kept, l)
		}
	}
	return kept
}

// objection says why one job is not for this worker: nil if it is. It asks the
// policies anew.
func (w *selector) objection(ctx context.Context, e *index.Entry) (*objection, error) {
	if !w.named(e.Name) {
		return &objection{verdict: "NOT_ELIGIBLE", reason: "its name is none of those asked for: " + shorten.To(strings.Join(w.names, ", "), 200)}, nil
	}
	if !w.filter.Matches(subjectOf(e, &w.filter)) {
		return &objection{verdict: "NOT_ELIGIBLE", reason: "the filter does not match it"}, nil
	}
	left, err := w.judgeDetails(ctx, []*index.Entry{e}, []int{0})
	if err != nil {
		return nil, err
	}
	if len(left) == 0 {
		return &objection{verdict: "NOT_ELIGIBLE", reason: "the filter does not match its details"}, nil
	}
	for _, a := range w.rules.eligibility {
		if o := w.objectionOf(ctx, a, e); o != nil {
			return o, nil
		}
	}
	return nil, nil //nolint:nilnil // no objection
}

// objectionOf asks one policy about one job.
func (w *selector) objectionOf(ctx context.Context, a *boundPolicy, e *index.Entry) *objection {
	verdicts, err := w.verdicts(ctx, a, []*index.Entry{e}, []int{0})
	switch {
	case err != nil && a.Lenient:
		return nil
	case err != nil:
		return &objection{verdict: "POLICY_ERROR", policy: a.title(), reason: "the policy " + a.name() + " failed, which denies: " + err.Error()}
	case verdicts[0].Decision == policy.Allow:
		return nil
	}
	return &objection{verdict: "NOT_ELIGIBLE", policy: a.title(), reason: a.reason(verdicts[0])}
}

// objection is why a worker may not have a job.
type objection struct{ verdict, policy, reason string }

// title is the policy's name with its version.
func (a *boundPolicy) title() string {
	if a.manifest.Version == "" {
		return a.name()
	}
	return a.name() + " " + a.manifest.Version
}

func (a *boundPolicy) reason(v policy.Verdict) string {
	text := "denied by the policy " + a.name()
	if v.Decision == policy.Defer {
		text = "deferred by the policy " + a.name()
		if !v.Until.IsZero() {
			text += " until " + v.Until.UTC().Format(time.RFC3339)
		}
	}
	if v.Reason >= 0 && v.Reason < len(a.manifest.Reasons) {
		text += ": " + a.manifest.Reasons[v.Reason]
	}
	return text
}
