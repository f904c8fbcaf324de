package driver

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// maxAttachmentName is the longest name of an attached record, in bytes.
const maxAttachmentName = 128

// Check refuses, as Invalid, an op that is wrong in any state of a board with
// these capabilities. A driver calls it before it looks at the store, and then
// refuses what only its own store cannot take.
func (op *Op) Check(c Capabilities) error {
	switch {
	case op.Kind < Post || op.Kind > Tally:
		return job.Errorf(job.Invalid, "there is no op of kind %d: want %d to %d", op.Kind, Post, Tally)
	case op.Precondition > Free:
		return job.Errorf(job.Invalid, "there is no precondition %d: want at most %d", op.Precondition, Free)
	case op.Kind != Post && op.Kind != Claim && op.Kind != Tally && op.Job == (job.ID{}):
		return job.Errorf(job.Invalid, "the op names no job: want a uuid that is not all zeros")
	case op.Precondition.ByToken() && op.Token.IsZero():
		return job.Errorf(job.Invalid, "the op has no token: want that of the claim")
	case op.Precondition == HeldByOwner && op.Owner == "":
		return job.Errorf(job.Invalid, "the op has no owner: want that of the claim")
	case len(op.Reason) > job.MaxReason:
		return tooLarge("the reason", len(op.Reason), job.MaxReason)
	}
	if err := op.checkInbox(c); err != nil {
		return err
	}
	if err := op.checkGroup(c); err != nil {
		return err
	}
	if err := checkStatus(op.Status, c); err != nil {
		return err
	}
	if err := checkAttachments(op.Attach, c); err != nil {
		return err
	}
	if err := op.Hold.check(); err != nil {
		return err
	}
	if err := op.checkFollowing(c); err != nil {
		return err
	}
	return op.checkKind(c)
}

// ByToken reports whether the precondition names a claim by its token.
func (m Precondition) ByToken() bool { return m == HeldByToken || m == Lapsed }

func (op *Op) checkKind(c Capabilities) error {
	switch op.Kind {
	case Post:
		return op.checkPost(c)
	case Claim:
		return op.checkClaim(c)
	case Extend:
		return op.checkExtend(c)
	case Restore, Purge:
		if err := checkKeys(op.Keys, c); err != nil {
			return err
		}
		if op.Precondition != Whatever {
			return job.Errorf(job.Invalid, "the job is off the board, where nobody claims it: want no precondition on a claim, got %d", op.Precondition)
		}
	case Remove:
		return op.Ending.check(c)
	case Trash:
		return op.Ending.checkTrash(c)
	case Update, Release, Refuse, Tally:
	}
	return nil
}

func (op *Op) checkInbox(c Capabilities) error {
	switch {
	case op.Inbox == 0 && op.Kind != Refuse:
		return nil
	case !c.Inbox:
		return job.Errorf(job.Invalid, "there is no inbox here: want an op that is about none of its postings")
	case op.Inbox == 0 || op.Inbox > math.MaxInt64:
		return job.Errorf(job.Invalid, "the posting in the inbox has the number %d: want 1 to %d", op.Inbox, int64(math.MaxInt64))
	case op.Kind != Post && op.Kind != Refuse:
		return job.Errorf(job.Invalid, "an op of kind %d is about a posting in the inbox: want %d or %d", op.Kind, Post, Refuse)
	}
	return nil
}

func (op *Op) checkPost(c Capabilities) error {
	p := op.Posting
	switch {
	case p == nil:
		return job.Errorf(job.Invalid, "the post has no posting")
	case p.ID == (job.ID{}):
		return job.Errorf(job.Invalid, "the posting names no job: want a uuid that is not all zeros")
	case op.Job != (job.ID{}) && op.Job != p.ID:
		return job.Errorf(job.Invalid, "the op is for job %v and its posting for %v: want the same, or none in the op", op.Job, p.ID)
	case !slices.Contains(c.Encodings, p.Encoding.String()):
		return job.Errorf(job.Invalid, "details in encoding %v are not kept here: want %s", p.Encoding, strings.Join(c.Encodings, " or "))
	case len(p.Details) > c.MaxDetails:
		return tooLarge("details", len(p.Details), c.MaxDetails)
	case len(p.Extra) > c.MaxRecord:
		return tooLarge("the posting's extra fields", len(p.Extra), c.MaxRecord)
	}
	if err := checkKeys(op.Keys, c); err != nil {
		return err
	}
	if err := op.checkReplaces(c); err != nil {
		return err
	}
	if err := op.checkImport(c); err != nil {
		return err
	}
	return checkLimits(op.Limits, c)
}

func (op *Op) checkReplaces(c Capabilities) error {
	other := op.Replaces
	switch {
	case other == nil:
		return nil
	case !c.Replaces:
		return job.Errorf(job.Invalid, "jobs are not replaced here: want a post that replaces none")
	case other.Kind != Remove || other.Precondition != Free:
		return job.Errorf(job.Invalid, "the post replaces a job by an op of kind %d with precondition %d: want %d and %d", other.Kind, other.Precondition, Remove, Free)
	case other.Replaces != nil:
		return job.Errorf(job.Invalid, "the op that takes job %v away replaces one in turn: want one that replaces none", other.Job)
	case other.Job == op.Posting.ID:
		return job.Errorf(job.Invalid, "the posting replaces job %v, which is itself: want another one", other.Job)
	}
	return other.Check(c)
}

func checkKeys(keys []Key, c Capabilities) error {
	if len(keys) > 0 && !c.Keys {
		return job.Errorf(job.Invalid, "keys are not kept here: want none, got %d", len(keys))
	}
	if len(keys) > MaxKeys {
		return job.Errorf(job.Invalid, "the op takes %d keys: want at most %d", len(keys), MaxKeys)
	}
	for i := range keys {
		switch k := &keys[i]; {
		case k.Name == "" || len(k.Name) > MaxKey:
			return job.Errorf(job.Invalid, "a key has a name of %d bytes: want 1 to %d", len(k.Name), MaxKey)
		case strings.HasPrefix(k.Name, RatePrefix):
			return job.Errorf(job.Invalid, "a key has the name %.80q: names that begin with %q are for rates", k.Name, RatePrefix)
		case k.Number > math.MaxInt64:
			return job.Errorf(job.Invalid, "the key %.80q has the number %d: want at most %d", k.Name, k.Number, int64(math.MaxInt64))
		case k.For < 0:
			return job.Errorf(job.Invalid, "the key %.80q is to be had for %v: want 0 or more", k.Name, k.For)
		case slices.ContainsFunc(keys[:i], func(other Key) bool { return other.Name == k.Name }):
			return job.Errorf(job.Invalid, "the op takes the key %.80q twice", k.Name)
		}
	}
	return nil
}

func (op *Op) checkClaim(c Capabilities) error {
	spec := op.Claim
	switch {
	case spec == nil || spec.Owner == "":
		return job.Errorf(job.Invalid, "the claim has no owner")
	case spec.Count < 1:
		return job.Errorf(job.Invalid, "the claim asks for %d jobs: want at least 1", spec.Count)
	case len(spec.Candidates) > c.MaxCandidates:
		return job.Errorf(job.Invalid, "the claim has %d candidates: want at most %d", len(spec.Candidates), c.MaxCandidates)
	case spec.Remember && op.Request == [16]byte{}:
		return job.Errorf(job.Invalid, "the claim's answer is to be remembered: want a request to remember it by")
	}
	for i := range spec.Candidates {
		candidate := &spec.Candidates[i]
		if candidate.Job == (job.ID{}) || candidate.Nonce == [16]byte{} {
			return job.Errorf(job.Invalid, "candidate %d: want a uuid and a nonce that are not all zeros", i+1)
		}
		if err := checkStatus(candidate.Status, c); err != nil {
			return err
		}
		if err := checkLimits(candidate.Limits, c); err != nil {
			return err
		}
		if err := checkRates(candidate.Rates, c); err != nil {
			return err
		}
		if err := checkMost(candidate.Most, c); err != nil {
			return err
		}
	}
	if spec.Lease < job.MinLease && !spec.NoExpiry {
		return job.Errorf(job.Invalid, "the claim's lease is %v: want at least %v, or no expiry", spec.Lease, job.MinLease)
	}
	return nil
}

func (op *Op) checkExtend(c Capabilities) error {
	switch {
	case op.Precondition != HeldByToken && op.Precondition != HeldByOwner:
		return job.Errorf(job.Invalid, "a lease is extended with precondition %d: want the claim's token or owner", op.Precondition)
	case op.Status != nil || op.Attach != nil || op.Hold != nil:
		return job.Errorf(job.Invalid, "an extension changes the lease only: want no status, attached record or hold")
	case op.Lease < job.MinLease && !op.NoExpiry:
		return job.Errorf(job.Invalid, "the extension's lease is %v: want at least %v, or no expiry", op.Lease, job.MinLease)
	}
	return checkMost(op.Most, c)
}

// checkMost looks at how long a claim may stand.
func checkMost(most time.Duration, c Capabilities) error {
	switch {
	case most != 0 && !c.Timeouts:
		return job.Errorf(job.Invalid, "a claim is to stand for at most %v, which this store does not see to: want no bound", most)
	case most < 0 || most > 0 && most < job.MinLease:
		return job.Errorf(job.Invalid, "a claim is to stand for at most %v: want at least %v, or 0 for no bound", most, job.MinLease)
	}
	return nil
}

func (e *Ending) check(c Capabilities) error {
	switch {
	case e == nil:
		return nil
	case e.Outcome != job.Consumed && e.Outcome != job.Canceled && e.Outcome != job.Failed:
		return job.Errorf(job.Invalid, "a job cannot end as %v: want %v, %v or %v", e.Outcome, job.Consumed, job.Canceled, job.Failed)
	case e.Keep < 0:
		return job.Errorf(job.Invalid, "the final record is to be kept for %v: want 0 or more", e.Keep)
	case len(e.Data) > c.MaxRecord:
		return tooLarge("the final record", len(e.Data), c.MaxRecord)
	}
	return nil
}

func (e *Ending) checkTrash(c Capabilities) error {
	switch {
	case e == nil:
		return nil
	case !c.Endings:
		return job.Errorf(job.Invalid, "how a job comes to the trash is not kept here: want no ending")
	case e.Outcome != job.Failed || e.Keep != 0 || e.Data != nil || e.KeepPosting || e.KeepAttached:
		return job.Errorf(job.Invalid, "a job goes to the trash with the ending %v, which keeps something: want none, or %v alone", e.Outcome, job.Failed)
	}
	return nil
}

func (h *Hold) check() error {
	if h == nil {
		return nil
	}
	until := !h.Until.IsZero()
	if h.For < 0 || h.Always && h.For != 0 || h.Always && until || h.For != 0 && until {
		return job.Errorf(job.Invalid, "the hold is of two sorts, or negative: want one of until a time, for a time, always, or none")
	}
	return nil
}

func checkStatus(status *[]byte, c Capabilities) error {
	if status != nil && len(*status) > c.MaxRecord {
		return tooLarge("the status record", len(*status), c.MaxRecord)
	}
	return nil
}

func checkAttachments(list []Attachment, c Capabilities) error {
	if len(list) > 0 && !c.Attachments {
		return job.Errorf(job.Invalid, "attached records are not kept here: want none, got %d", len(list))
	}
	for i := range list {
		a := &list[i]
		if a.Name == "" || len(a.Name) > maxAttachmentName || strings.ContainsFunc(a.Name, notInName) {
			return job.Errorf(job.Invalid, "attached record %.140q: want a name of 1 to %d of [a-z0-9/._-]", a.Name, maxAttachmentName)
		}
		if len(a.Data) > c.MaxRecord {
			return tooLarge("the attached record "+a.Name, len(a.Data), c.MaxRecord)
		}
	}
	return nil
}

func checkLimits(list []Limit, c Capabilities) error {
	if len(list) > 0 && !c.Limits {
		return job.Errorf(job.Invalid, "limits are not counted here: want none, got %d", len(list))
	}
	for i := range list {
		if l := &list[i]; l.Key == "" || l.Key[0] == 0 || l.Weight < 0 {
			return job.Errorf(job.Invalid, "limit %.80q has weight %d: want a key that begins with no zero byte, and a weight of 0 or more", l.Key, l.Weight)
		}
	}
	return nil
}

func checkRates(list []Rate, c Capabilities) error {
	if len(list) > 0 && !c.Rates {
		return job.Errorf(job.Invalid, "rates are not counted here: want none, got %d", len(list))
	}
	for i := range list {
		r := &list[i]
		switch {
		case r.Key == "" || len(r.Key) > MaxRateKey:
			return job.Errorf(job.Invalid, "a rate's key has %d bytes: want 1 to %d", len(r.Key), MaxRateKey)
		case r.Max < 1:
			return job.Errorf(job.Invalid, "rate %.80q grants %d claims in a period: want at least 1", r.Key, r.Max)
		case r.Per < time.Second || r.Per > MaxPeriod || r.Per%time.Second != 0:
			return job.Errorf(job.Invalid, "rate %.80q has periods of %v: want whole seconds, at most %v", r.Key, r.Per, MaxPeriod)
		case slices.ContainsFunc(list[:i], func(other Rate) bool { return other.Key == r.Key }):
			return job.Errorf(job.Invalid, "rate %.80q stands there twice", r.Key)
		}
	}
	return nil
}

// Check refuses, as Invalid, a space with a malformed name.
func (s Space) Check() error {
	if s.Name == "" || strings.ContainsFunc(s.Name, notInSpace) {
		return job.Errorf(job.Invalid, "the space is named %.140q: want a name of [a-z0-9._-]", s.Name)
	}
	return nil
}

// CheckDocument refuses, as Invalid, a malformed space name or an empty document
// name.
func CheckDocument(space Space, name string) error {
	if err := space.Check(); err != nil {
		return err
	}
	if name == "" {
		return job.Errorf(job.Invalid, "the document in space %q has no name", space.Name)
	}
	return nil
}

func notInSpace(r rune) bool { return r == '/' || notInName(r) }

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '/' && r != '.' && r != '_' && r != '-'
}

func tooLarge(what string, got, most int) error {
	return job.Errorf(job.Invalid, "there are %d bytes of %s: want at most %d", got, what, most)
}
