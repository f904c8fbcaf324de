package store

import (
	"context"
	"crypto/sha1" //nolint:gosec // it is how Redis names scripts
	_ "embed"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// The parts of the script that carries out ops, in the order that they stand in.
var (
	//go:embed lua/board.lua
	boardLua string
	//go:embed lua/memory.lua
	memoryLua string
	//go:embed lua/limits.lua
	limitsLua string
	//go:embed lua/job.lua
	jobLua string
	//go:embed lua/past.lua
	pastLua string
	//go:embed lua/reconcile.lua
	reconcileLua string
	//go:embed lua/answer.lua
	answerLua string
	//go:embed lua/keys.lua
	keysLua string
	//go:embed lua/change.lua
	changeLua string
	//go:embed lua/post.lua
	postLua string
	//go:embed lua/claim.lua
	claimLua string
	//go:embed lua/run.lua
	runLua string
)

// A script is a Lua program that Redis knows by its digest.
type script struct {
	text string
	sha  string
}

func newScript(parts ...string) *script {
	text := groups() + inlined(strings.Join(parts, ""))
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see above
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}

// What follows the board is a function within the script's, which has the board's names once
// and hands them on: Lua looks for a name that a function takes from the one around it among
// all that were taken from there before, each time the script runs.
var applyScript = newScript(boardLua, "return (function()\n", memoryLua, limitsLua, jobLua, pastLua, reconcileLua, answerLua, keysLua, changeLua, postLua, usualLua, claimLua, runLua, "end)()\n")

// opReconcile is an op of the script alone: it puts into our records what other
// programs did to a job.
const opReconcile = 100

// opVerdict is likewise one of the script alone: it says what a host found when
// it read the posting of another program.
const opVerdict = 101

// opHeld is the claim that an imported job has, as the script reads it.
const opHeld = 102

// trouble is the kind of an op that failed in the middle of the script.
const trouble = 255

// unread is the kind of an op that met a posting which no host has read yet. Its
// message names the job, and its position says how many claims were made.
const unread = 254

// takenBy is the kind of an op that would take a key which a job has, whose uuid stands in
// place of the owner: job.AlreadyExists.
const takenBy = 253

// early is the kind of a Post for which a group is not closed or not empty yet. Its message
// is what the group's open jobs count: job.Precondition.
const early = 252

// holder is the owner of a job that may not be claimed yet.
const holder = "boardd:hold"

// claimOfBefore is why a claim ended that was granted in another generation.
const claimOfBefore = "the claim is of before Redis lost changes"

// leaseTolerance is by how much the end of a lease may seem to have moved though nobody
// moved it: keys end at a millisecond, and are looked at a moment after the clock.
const leaseTolerance = 100 * time.Millisecond

// The formats of what is kept, as struct.pack has them.
const (
	metaFormat  = ">BBI8I8I8I8I8c16I4c0I2c0" // format, flags, version, position, modified, not before, ended, digest, status, limits
	claimFormat = ">c32I8I8I2c0I2c0"         // token, since, deadline, owner, and limits, or last_modified if it is foreign
	pastFormat  = ">BBI8I8I8I8c16c32"        // flags, outcome, version, position, at, until, digest, token
	finalFormat = ">I8BI4c0I4c0I4c0"         // size, what is kept, status, data, posting
	stampFormat = ">I8BBBc32I8I8I8"          // position, kind, must, outcome, token, version, at, not before
	grantFormat = ">c36c32I8I8I8I8"          // job, token, lease, version, position, at
	grantSize   = 36 + 32 + 4*8
	pastSize    = 2 + 4*8 + 16 + 32
)

// constants are the names in capitals that come from here, and what stands in their place.
func constants() map[string]string {
	values := map[string]string{
		"META": luaText(metaFormat), "CLAIM": luaText(claimFormat), "PAST": luaText(pastFormat), "FINAL": luaText(finalFormat),
		"CLAIMED": luaText(metaFormat + strings.TrimPrefix(claimFormat, ">")), "STAMP": luaText(stampFormat), "GRANT": luaText(grantFormat),
		"NO_MEMORY": luaText(noMemory), "TOO_MANY": luaText(tooMany), "HOLDER": luaText(holder), "CLAIM_OF_BEFORE": luaText(claimOfBefore), "NONE": luaText(strings.Repeat("\x00", 16)),
	}
	for name, n := range map[string]int{
		"POST": int(driver.Post), "CLAIM_OP": int(driver.Claim), "EXTEND": int(driver.Extend), "UPDATE": int(driver.Update),
		"RELEASE": int(driver.Release), "REMOVE": int(driver.Remove), "SET_ASIDE": int(driver.Trash),
		"RESTORE": int(driver.Restore), "PURGE": int(driver.Purge), "SETTLE": opReconcile, "VERDICT": opVerdict,
		"HELD_BY_TOKEN": int(driver.HeldByToken), "HELD_BY_OWNER": int(driver.HeldByOwner), "LAPSED": int(driver.Lapsed),
		"HELD": int(driver.Held), "FREE": int(driver.Free),
		"NOT_FOUND": int(job.NotFound), "ALREADY_CLAIMED": int(job.AlreadyClaimed), "NOT_CLAIMED": int(job.NotClaimed),
		"NOT_OWNER": int(job.NotOwner), "LEASE_LOST": int(job.LeaseLost), "NOT_ELIGIBLE": int(job.NotEligible),
		"ALREADY_EXISTS": int(job.AlreadyExists), "QUOTA_EXCEEDED": int(job.QuotaExceeded),
		"PRECONDITION": int(job.Precondition), "ABORTED": int(job.Aborted), "TROUBLE": trouble, "TAKEN_BY": takenBy, "CORRUPT": int(job.Corrupt), "UNREAD": unread,
		"UNKNOWN": int(job.Unknown), "OPEN": int(job.Unclaimed), "COMPLETE": int(job.Complete), "TRASHED": int(job.Trashed),
		"CONSUMED": int(job.Consumed), "PURGED": int(job.Purged), "FOREIGN": int(job.ForeignChange), "EXTENDED": int(job.Extended),
		"LEASE_TOLERANCE": int(leaseTolerance / time.Microsecond), "GRANT_SIZE": grantSize, "PAST_SIZE": pastSize,
		"GROWTH": MaxFullGrowth, "FULL_DOCUMENT": MaxFullDocument, "SWEPT_DOCUMENTS": sweptDocuments,
	} {
		values[name] = strconv.Itoa(n)
	}
	maps.Copy(values, usual())
	return values
}

// luaWord is a comment, a text or a name, which is another table's if a dot is before it.
var luaWord = regexp.MustCompile(`--[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\.?[A-Za-z_]\w*`)

// inlined puts the constants where their names are: they need no room among the local names,
// of which a function has 200, and no function has to take them from the one around it.
func inlined(text string) string {
	values := constants()
	return luaWord.ReplaceAllStringFunc(text, func(word string) string {
		if value, ok := values[word]; ok {
			return value
		}
		return word
	})
}

// luaText is a text as Lua writes it.
func luaText(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, `\%03d`, c)
	}
	return "'" + b.String() + "'"
}

// groups is the head of each script: what is of groups.
func groups() string {
	var b strings.Builder
	fmt.Fprintf(&b, "local group_ = {TALLY = %d, EARLY = %d, CLOSED = %d, ENDED = {[%d] = 'x', [%d] = 'f'}}\n",
		driver.Tally, early, transition.Closed, job.Canceled, job.Failed)
	fmt.Fprintf(&b, "group_.HELD, group_.UNAVAILABLE = %d, %d\n", opHeld, job.Unavailable)
	fmt.Fprintf(&b, "group_.FROZEN, group_.RECEIVING, group_.GONE = %q, %q, %q\n", transition.Frozen, transition.Receiving, transition.Gone)
	fmt.Fprintf(&b, "group_.REIGN, group_.ENDEDMOVE = %q, %q\n", transition.OtherReign, transition.MoveEnded)
	return b.String()
}

// run runs the script. A server that does not know it is given its text: it
// said so before it did anything.
func (s *script) run(ctx context.Context, c redis.Scripter, keys []string, args ...any) *redis.Cmd {
	cmd := c.EvalSha(ctx, s.sha, keys, args...)
	if err := cmd.Err(); err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		return c.Eval(ctx, s.text, keys, args...)
	}
	return cmd
}
