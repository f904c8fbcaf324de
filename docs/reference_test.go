package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/api"
	"github.com/boardd/boardd/host/audit"
	"github.com/boardd/boardd/host/auditor"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/board/filter"
	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/chart"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/doctor"
	"github.com/boardd/boardd/host/fleet"
	"github.com/boardd/boardd/host/identity"
	"github.com/boardd/boardd/host/logevent"
	"github.com/boardd/boardd/host/recording"
	"github.com/boardd/boardd/host/replay"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/host/wasm/meter"
	"github.com/boardd/boardd/host/wasm/module"
	"github.com/boardd/boardd/host/webhook"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/embedded"
	"github.com/boardd/boardd/plugins/taskflow"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	policyblock "github.com/boardd/boardd/sdk/policy/block"
	"github.com/boardd/boardd/sdk/wirejson"
)

// commands returns the help of every command, as it prints itself.
func commands(t *testing.T, program string) string {
	t.Helper()
	var out strings.Builder
	help := func(path []string) string {
		text, err := exec.CommandContext(t.Context(), program, append(slices.Clone(path), "--help")...).Output()
		if err != nil {
			t.Fatalf("boardd %s --help: %v", strings.Join(path, " "), err)
		}
		return string(text)
	}
	var walk func(path []string)
	walk = func(path []string) {
		text := help(path)
		own := text
		if len(path) > 0 {
			own, _, _ = strings.Cut(text, "\nGlobal Flags:")
		}
		fmt.Fprintf(&out, "\n%s %s\n\n```txt\n%s\n```\n", strings.Repeat("#", 2+min(len(path), 1)),
			strings.Join(append([]string{"boardd"}, path...), " "), strings.TrimSpace(own))
		_, list, _ := strings.Cut(text, "Available Commands:\n")
		for line := range strings.Lines(list) {
			fields := strings.Fields(line)
			if len(fields) == 0 {
				break
			}
			if fields[0] != "help" {
				walk(append(slices.Clone(path), fields[0]))
			}
		}
	}
	walk(nil)
	return out.String() + "\n"
}

var metricHead = regexp.MustCompile(`(?m)^# HELP (boardd_\w+) (.*)\n# TYPE \w+ (\w+)\n\w+?(?:\{([^}]*)\})? `)

// everySort is a configuration with what has metrics of its own.
const everySort = `
backend "hooked" {
  driver = "embedded"
}
board "told" {
  backend = "hooked"
  webhook "notify" {
    url        = "https://hooks.example.com/"
    secret     = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    deliveries = "deliveries"
  }
}
board "deliveries" {
  backend = "hooked"
}
oidc "corp" {
  issuer    = "http://127.0.0.1:1"
  audiences = ["boardd"]
  grant {
    roles = ["viewer"]
  }
}
`

// advice is what to do about each metric.
var advice = map[string]string{
	"boardd_backend_answers":                    "0 while `boardd_driver_running` is 1: the store is away; the log has the error",
	"boardd_backend_full":                       "1: jobs can be claimed and ended, not posted; give the store room: see `boardd doctor`",
	"boardd_backend_limit_bytes":                "absent for PostgreSQL and ZooKeeper: watch the disks and the memory of their servers",
	"boardd_backend_used_bytes":                 "near `boardd_backend_limit_bytes`: posts will be refused; end jobs, shorten the boards' `history` and `idempotency_window`, or give the store room",
	"boardd_board_counts_age_seconds":           "grows: the store does not count, so that `boardd_jobs` with `trashed`, `complete` and `corrupt` is as old; see `boardd_backend_answers`",
	"boardd_board_ready":                        "0 for a minute: the log says why the board does not open; `boardd doctor` looks into its store",
	"boardd_board_unacknowledged_loss":          "1: see the loss with `boardd board get`, put right what it says, and then `boardd board acknowledge-loss`",
	"boardd_boards_open":                        "in a fleet: far from the others' share for minutes; `boardd server list` shows who does not count, and why",
	"boardd_boards":                             "over `metrics_boards`: the others are summed up for each tenant, as the board `_other`",
	"boardd_build_info":                         "differs between servers for longer than an upgrade takes: one was forgotten",
	"boardd_call_seconds":                       "slower than usual with `code=\"ok\"`: compare with `boardd_driver_apply_seconds`; if that is not slower, it is the server: take a [profile](#profiles)",
	"boardd_calls":                              "`queued` over 0 for long: the server has more calls than it can do; see `boardd_shed_calls_total`",
	"boardd_catalog_age_seconds":                "over 60 or -1: nobody is let in by the catalog's tokens; see whether its store is well",
	"boardd_catalog_lost_records":               "over 0: [the catalog was lost](#when-the-catalog-is-lost); `boardd catalog status` says what of it",
	"boardd_catalog_records":                    "falls without a deletion: somebody accepted a loss (`boardd audit list`)",
	"boardd_disk_bytes":                         "compare with `boardd_disk_free_bytes`",
	"boardd_disk_free_bytes":                    "below `disk_low`: make room; below 16 MiB the embedded store takes no more posts ([a full disk](#when-something-is-wrong))",
	"boardd_driver_apply_seconds":               "slower: the store is (its disk, its network, its other users), or the machine has no processor time left",
	"boardd_driver_restarts_total":              "grows: the driver dies or hangs; its last words are in the log",
	"boardd_driver_running":                     "0: the log says why the driver does not start; `boardd doctor` looks at its settings",
	"boardd_issuer_keys_age_seconds":            "over 1,800: the provider cannot be reached, which the log explains; over 86,400 or -1: nobody is let in by its tokens",
	"boardd_job_events_total":                   "`unknown_outcome`: the store broke off under a change, see whether it is well; `bad_record`: `boardd doctor` names the record; `expired` grows: workers die, or leases are too short; `post_refused` grows: a limit is reached; `tick_missed`: see `boardd schedule list`",
	"boardd_job_run_seconds":                    "grows: the work takes longer; near the lease: claims will expire",
	"boardd_job_wait_seconds":                   "grows: more workers, or see with `boardd job explain` why they may not have the jobs",
	"boardd_jobs":                               "`trashed` grows: look at the reasons on the board's page or with `boardd job list --state trashed`; `ready` grows: more workers, or see why they may not have the jobs with `boardd job explain`",
	"boardd_oldest_ready_seconds":               "grows: nobody claims that job; `boardd job explain` says why",
	"boardd_policy_compilations":                "`queued` over 0 for long: tenants promote more than the server compiles; `server_limits` says how many at once",
	"boardd_policy_memory_bytes":                "near its limit: see `boardd_policy_processes`",
	"boardd_policy_processes":                   "near its limit: boards ask more policies than the server may run; raise `server_limits`, or lower the tenants' `policy_processes`",
	"boardd_policy_refused_total":               "grows: policies are denied processes or compilations; WhoAmI and the page of tenants show whose are many",
	"boardd_work":                               "near 2,048 for long: the server has more work than it can do, as with `boardd_calls`",
	"boardd_work_refused_total":                 "grows: the same; smaller calls, or more servers",
	"boardd_ready":                              "0 for longer than a start takes: the body of `/readyz` says why",
	"boardd_refused_requests_total":             "`unauthenticated`: somebody guesses, or a worker has an old token (the log names the addresses); `permission_denied`: a token with too few roles, or a name that is missing in `hostnames`",
	"boardd_request_bytes":                      "near 134,217,728 for long: large requests, or slow networks; limits for the tenant that sends them",
	"boardd_request_bytes_refused_total":        "grows: the same",
	"boardd_shed_calls_total":                   "grows: the server has more calls than it can do: limits for the tenant that makes them, or more servers",
	"boardd_streams":                            "near 10,000: more servers, or fewer watchers; limit `watchers`",
	"boardd_webhook_deliveries_total":           "`failed` or `given_up` grow: the jobs on that board have the reasons, those given up in its trash",
	"boardd_webhook_oldest_undelivered_seconds": "over an hour: a receiver is away, or the board of the deliveries is paused; its jobs have the reasons",
	"boardd_webhook_untold_seconds":             "over 0 for minutes: the log says why, most often that the board of the deliveries cannot be posted to",
	"boardd_worker_items":                       "claims and endings near 1 a call while many jobs are ready: workers with more concurrency, or `ahead`, need fewer calls",
	"boardd_worker_waits_total":                 "`ended` grows quickly: a proxy or a client loses patience sooner than the calls ask for; see [behind a proxy](#behind-a-proxy)",
	"boardd_workers_waiting":                    "0 while jobs are rare: there are no workers; they wait in two calls at most, each",
	"boardd_waiting_claims":                     "0 while jobs are ready: there are no workers, or too few",
}

// metrics returns the table of what GET /metrics of a server that was used a
// little answers.
func metrics(t *testing.T, program string) string {
	t.Helper()
	configuration := filepath.Join(t.TempDir(), "boardd.hcl")
	if err := os.WriteFile(configuration, []byte(everySort), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startDevIn(t, program, os.Getenv("PATH"), "--config", configuration)
	get := func(token string) string {
		_, text := testserver.Get(t, s.address+"/metrics", token)
		return text
	}
	get("nobody's")
	if out, err := exec.CommandContext(t.Context(), program, "--addr", s.address, "--token", "dev", "job", "post", "x").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	testserver.Eventually(t, "the store has been asked how it is", func() bool { return strings.Contains(get("dev"), "\nboardd_backend_used_bytes{") })
	found := metricHead.FindAllStringSubmatch(get("dev"), -1)
	if len(found) < 10 {
		t.Fatalf("the server shows %d metrics of its own", len(found))
	}
	var out strings.Builder
	out.WriteString("| metric | kind | labels | what it says | what to do about it |\n|---|---|---|---|---|\n")
	for _, m := range found {
		if advice[m[1]] == "" {
			t.Errorf("nobody says what to do about the metric %s: add it to advice in this test", m[1])
		}
		var labels []string
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[4], -1) {
			if label[1] != "le" {
				labels = append(labels, "`"+label[1]+"`")
			}
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", m[1], m[3], strings.Join(labels, ", "), m[2], advice[m[1]])
	}
	for name := range advice {
		if !slices.ContainsFunc(found, func(m []string) bool { return m[1] == name }) {
			t.Errorf("the server does not show the metric %s, of which this test says what to do about it", name)
		}
	}
	return out.String()
}

// limits are the limits that a user can meet, by the names of their constants.
var limits = []struct {
	name  string
	value any
	text  string
}{
	{"job.MaxName", job.MaxName, "bytes of a job's name"},
	{"job.MaxOwner", job.MaxOwner, "bytes of an owner"},
	{"job.MaxDetails", job.MaxDetails, "bytes of one job's details"},
	{"job.MaxDetailsNest", job.MaxDetailsNest, "levels of nesting in details"},
	{"driver.MaxBad", driver.MaxBad, "entries that cannot be read as jobs and are listed; more are counted"},
	{"job.MaxLabels", job.MaxLabels, "labels of one job or worker"},
	{"job.MaxLabelKey", job.MaxLabelKey, "bytes of a label's key"},
	{"job.MaxLabelValue", job.MaxLabelValue, "bytes of a label's value"},
	{"job.MaxReason", job.MaxReason, "bytes of a reason; a longer one is cut"},
	{"job.MaxBookName", job.MaxBookName, "bytes of a book's name or uuid"},
	{"job.MaxNotBeforeDays", job.MaxNotBeforeDays, "days that a job may be delayed"},
	{"job.MaxOperations", job.MaxOperations, "operations of one job"},
	{"job.MinOperationPriority", job.MinOperationPriority, "an operation's priority at the lowest: it comes first"},
	{"job.MaxOperationPriority", job.MaxOperationPriority, "an operation's priority at the highest: it comes last"},
	{"job.MaxOperationInput", job.MaxOperationInput, "bytes of one operation's input"},
	{"job.MaxOperationInputs", job.MaxOperationInputs, "bytes of the names and inputs of all operations of a job"},
	{"job.MaxResult", job.MaxResult, "bytes of one operation's result"},
	{"job.MaxResults", job.MaxResults, "bytes of the results of all operations of a job"},
	{"job.MaxLogEntries", job.MaxLogEntries, "entries that are kept of one job's log; the oldest go first, in groups"},
	{"job.MaxLogBytes", job.MaxLogBytes, "bytes that are kept of one job's log; the oldest go first, in groups"},
	{"job.MaxLogMessage", job.MaxLogMessage, "bytes of one log entry's message"},
	{"job.MaxLogType", job.MaxLogType, "bytes of one log entry's type"},
	{"job.MaxLogAppend", job.MaxLogAppend, "bytes of the log entries of one call"},
	{"board.MaxLogBatch", board.MaxLogBatch, "log entries that one call appends or reads"},
	{"job.MaxAfter", job.MaxAfter, "jobs that one job waits for"},
	{"job.MaxBook", job.MaxBook, "bytes of a book's content"},
	{"board.DefaultMaxHistoryEntries", board.DefaultMaxHistoryEntries, "ended jobs that a board with a history keeps; the oldest go first"},
	{"board.DefaultMaxHistoryBytes", board.DefaultMaxHistoryBytes, "bytes of ended jobs that a board with a history keeps; the oldest go first"},
	{"job.MinLease", job.MinLease, "the shortest lease"},
	{"job.DefaultMaxBackoff", job.DefaultMaxBackoff, "the longest delay before another attempt, where a board sets no `max_backoff`"},
	{"job.MaxLease", job.MaxLease, "the longest lease; `max_lease` lowers it for a board"},
	{"job.MaxTimeout", job.MaxTimeout, "the longest timeout of a job"},
	{"driver.MaxKey", driver.MaxKey, "bytes of the name of a key in a driver's op"},
	{"driver.MaxKeys", driver.MaxKeys, "keys that one op takes"},
	{"driver.MaxGroup", driver.MaxGroup, "bytes of the name of a group in a driver's op"},
	{"driver.MaxRateKey", driver.MaxRateKey, "bytes of the key of a rate in a driver's op"},
	{"driver.MaxPeriod", driver.MaxPeriod, "the longest period of a rate; periods are whole seconds"},
	{"board.MaxImportLines", board.MaxImportLines, "lines of an export that one call takes in"},
	{"board.MaxSchedules", board.MaxSchedules, "schedules of a board"},
	{"board.MinCatchUp", board.MinCatchUp, "the shortest catch-up of a schedule"},
	{"board.MaxCatchUp", board.MaxCatchUp, "the longest catch-up of a schedule"},
	{"board.MaxJitter", board.MaxJitter, "the longest jitter of a schedule"},
	{"job.MaxBatchName", job.MaxBatchName, "bytes of a batch's name"},
	{"board.MaxBatches", board.MaxBatches, "batches of a board that are closed, expected to be complete, or followed by a job"},
	{"board.MaxExpected", board.MaxExpected, "jobs that a batch may be expected to have"},
	{"board.BatchKept", board.BatchKept, "for which a batch is known after it is done"},
	{"webhook.MaxPerBoard", webhook.MaxPerBoard, "webhooks of a board"},
	{"webhook.MaxURL", webhook.MaxURL, "bytes of a webhook's address"},
	{"webhook.MaxSecrets", webhook.MaxSecrets, "secrets of a webhook, each of which signs"},
	{"webhook.MinSecret", webhook.MinSecret, "bytes of a webhook's secret at least, decoded"},
	{"webhook.MaxSecret", webhook.MaxSecret, "bytes of a webhook's secret at most, decoded"},
	{"webhook.MaxNetworks", webhook.MaxNetworks, "networks that a webhook may reach besides the internet"},
	{"webhook.DefaultTimeout", webhook.DefaultTimeout, "a webhook's request may take, where it sets no `timeout`"},
	{"webhook.MaxTimeout", webhook.MaxTimeout, "the longest `timeout` of a webhook"},
	{"webhook.MinWaiting", webhook.MinWaiting, "the shortest `oldest_waiting` of a webhook"},
	{"webhook.MaxWaiting", webhook.MaxWaiting, "the longest `oldest_waiting` of a webhook"},
	{"webhook.MaxAnswer", webhook.MaxAnswer, "bytes of a receiver's answer to a test that are kept"},
	{"webhook.MaxTries", webhook.MaxTries, "tries of a delivery, where its board has no `max_attempts`"},
	{"webhook.FirstRetry", webhook.FirstRetry, "before the second try of a delivery, where its board has no `backoff`"},
	{"webhook.MaxRetry", webhook.MaxRetry, "the longest delay between tries, likewise"},
	{"webhook.AtOnce", webhook.AtOnce, "requests to one webhook that a server has under way at once"},
	{"job.MaxUniqueKey", job.MaxUniqueKey, "bytes of a unique key"},
	{"job.MinUniqueWindow", job.MinUniqueWindow, "the shortest window of a unique key"},
	{"job.MaxUniqueWindow", job.MaxUniqueWindow, "the longest window of a unique key"},
	{"board.MaxBatch", board.MaxBatch, "items of one call"},
	{"board.MaxPage", board.MaxPage, "jobs of one page of a listing"},
	{"board.MaxWait", board.MaxWait, "the longest `wait`; a longer one is cut"},
	{"board.MaxWaiters", board.MaxWaiters, "calls that wait on one board at once"},
	{"board.MaxRequestID", board.MaxRequestID, "bytes of a `requestId`"},
	{"filter.Max", filter.Max, "bytes of a filter"},
	{"board.MaxClaimBytes", board.MaxClaimBytes, "bytes of details in the answer to one claim call, beyond the first 32 jobs; then it gives fewer jobs than asked for"},
	{"board.MaxClaimNames", board.MaxClaimNames, "names of one claim call"},
	{"board.MinEntityTTL", board.MinEntityTTL, "the shortest time that an entity is listed without a new word from it"},
	{"board.MaxEntityTTL", board.MaxEntityTTL, "the longest"},
	{"board.MaxEntityMetadata", board.MaxEntityMetadata, "bytes of an entity's metadata"},
	{"api.MaxProfile", api.MaxProfile, "for which a profile of the server may be taken"},
	{"api.MaxRequest", api.MaxRequest, "bytes of a request, after decompression"},
	{"api.MaxListPage", api.MaxListPage, "entries of one page of ListBoards, ListSchedules, ListBatches, ListTenants, ListTokens, ListTenantBoards and ListPlaces"},
	{"api.MaxWholeList", api.MaxWholeList, "entries of ListBoards, or of one of the last four lists, without a `pageSize`; a longer one has to be asked for in pages"},
	{"api.MaxListBytes", api.MaxListBytes, "bytes of the entries of one of these five lists, or of its page, in Protocol Buffers: clients of gRPC refuse answers of more than 4 MiB unless they say otherwise. A page ends early then, with one entry at least; a list without a `pageSize` is refused"},
	{"host.MaxSearched", host.MaxSearched, "boards that a search over all boards looks at"},
	{"host.MaxFound", host.MaxFound, "jobs of each board that such a search shows"},
	{"boarddv1.DefaultMost", boarddv1.DefaultMost, "items of a list of a request, unless its `(most)` in [boardd.proto](../sdk/boardd/v1/boardd.proto) says otherwise; with more it is refused while it is read"},
	{"boarddv1.MaxItems", boarddv1.MaxItems, "items in all lists of a request together"},
	{"api.MaxBytes", api.MaxBytes, "bytes of requests that the server holds at once, what is unpacked included; others wait for five seconds at most; as much again of those that other servers have passed on"},
	{"api.MaxTenantBytes", api.MaxTenantBytes, "of these, bytes of one tenant"},
	{"api.MaxUncounted", api.MaxUncounted, "bytes of a request that is not counted among these"},
	{"api.MaxWork", api.MaxWork, "items of calls (jobs, claims, uuids, 8 KiB of a request) that are worked on at once; calls with more wait for five seconds at most"},
	{"api.MaxTenantWork", api.MaxTenantWork, "of these, items of one tenant"},
	{"api.MaxLightWork", api.MaxLightWork, "items of a call that is not counted among these"},
	{"api.MaxRefusalLines", api.MaxRefusalLines, "lines of the log about what one token, or one address without a token, was refused in ten seconds; the others are counted in one line"},
	{"config.MaxFile", config.MaxFile, "bytes of a configuration file"},
	{"config.MaxLeeway", config.MaxLeeway, "by which the clock of an identity provider may differ from the server's"},
	{"config.DefaultMaxLifetime", config.DefaultMaxLifetime, "for which a token of an identity provider may be good from now on, unless `max_lifetime` says otherwise"},
	{"identity.MaxToken", identity.MaxToken, "bytes of a token of an identity provider"},
	{"identity.MaxKeys", identity.MaxKeys, "keys of an identity provider"},
	{"identity.MaxKeyAge", identity.MaxKeyAge, "for which the last keys of an identity provider do that cannot be reached"},
	{"config.MinRecord", config.MinRecord, "the shortest `record`"},
	{"config.MaxRecord", config.MaxRecord, "the longest `record`"},
	{"recording.MaxBytes", recording.MaxBytes, "bytes of a board's recording; the oldest go first"},
	{"recording.MaxSegment", recording.MaxSegment, "bytes of one file of it, after which another is begun"},
	{"recording.MaxOpen", recording.MaxOpen, "open jobs that such a file begins with, the first ones in the order"},
	{"recording.MaxQueued", recording.MaxQueued, "changes that wait to be recorded; more are a gap"},
	{"recording.MaxLine", recording.MaxLine, "bytes of a line of a recording that is read"},
	{"replay.MaxEvents", replay.MaxEvents, "changes that a simulation goes through"},
	{"replay.MaxKeys", replay.MaxKeys, "keys of its report; those with fewer jobs are one"},
	{"replay.MaxLost", replay.MaxLost, "spans of time in its report in which claims were not recorded; later ones lengthen the last"},
	{"replay.MaxStarved", replay.MaxStarved, "jobs that its report names because they starve"},
	{"admin.MaxSimulation", admin.MaxSimulation, "the longest that a simulation may take"},
	{"config.MaxWindow", config.MaxWindow, "the longest `idempotency_window` and `history`"},
	{"driver.DefaultMaxTombstones", driver.DefaultMaxTombstones, "finished jobs that a board remembers; the oldest are forgotten first"},
	{"driver.MaxBoardName", driver.MaxBoardName, "bytes of a board's name as a driver gets it: tenant, slash, board"},
	{"driver.MaxDocument", driver.MaxDocument, "bytes of a document that a driver keeps"},
	{"config.MaxPlacement", config.MaxPlacement, "the largest `placement` of a backend"},
	{"config.MaxLimit", int64(config.MaxLimit), "the largest limit that can be set"},
	{"tenant.MaxNameLength", tenant.MaxNameLength, "bytes of the name of a tenant, token, board, backend or policy"},
	{"admin.MaxTokens", admin.MaxTokens, "tokens of one tenant in the catalog"},
	{"admin.MaxTokenBoards", admin.MaxTokenBoards, "boards that a token made through the API is bound to"},
	{"auditor.MaxPage", auditor.MaxPage, "records of one answer of `GetAudit`"},
	{"doctor.MaxFindings", doctor.MaxFindings, "findings of one sort that `boardd doctor` shows of one board"},
	{"audit.MaxSegment", audit.MaxSegment, "bytes of one file of the audit log, after which another is begun"},
	{"config.MaxRestAfter", config.MaxRestAfter, "the longest `rest_after`, for which nobody has called a board that is closed since nothing is to be done on it"},
	{"config.MinRestAfter", config.MinRestAfter, "the shortest `rest_after` but for `0s`"},
	{"board.MaxRest", board.MaxRest, "for which a board rests at most"},
	{"fleet.MaxOpens", fleet.MaxOpens, "boards that a server begins to open in a second because they became its own; those that somebody calls are not counted"},
	{"fleet.MaxSecrets", fleet.MaxSecrets, "secrets of the key that the servers of a fleet share"},
	{"fleet.MinSecret", fleet.MinSecret, "characters of one of them, at least"},
	{"catalog.MaxModule", catalog.MaxModule, "bytes of a policy's module"},
	{"config.DefaultPolicies", config.DefaultPolicies, "policies of a tenant, unless its limits say otherwise"},
	{"config.DefaultPolicyBytes", config.DefaultPolicyBytes, "bytes of all their versions, likewise"},
	{"config.DefaultPolicyProcesses", config.DefaultPolicyProcesses, "processes on one server that run them, likewise"},
	{"config.DefaultPolicyMemory", config.DefaultPolicyMemory, "bytes of memory of these, likewise"},
	{"config.DefaultServerPolicyProcesses", config.DefaultServerPolicyProcesses, "processes that run all tenants' policies on a server, unless its configuration says otherwise"},
	{"config.DefaultServerPolicyMemory", config.DefaultServerPolicyMemory, "bytes of memory of these, likewise"},
	{"config.DefaultCompilations", config.DefaultCompilations, "modules that a server compiles at once, likewise; one of a tenant"},
	{"catalog.MaxPolicyVersions", catalog.MaxPolicyVersions, "versions of a policy that are kept; the oldest go first"},
	{"catalog.MaxPromotions", catalog.MaxPromotions, "versions of a policy that a board remembers to have asked; the oldest go first"},
	{"config.MaxRules", config.MaxRules, "policies that decide who may have a board's jobs: of the configuration, and as many that were promoted"},
	{"admin.MinDigest", admin.MinDigest, "digits by which a version of a policy is named, at least"},
	{"chart.MaxRing", chart.MaxRing, "bytes of what a board keeps for its charts, in its store"},
	{"board.MaxNames", board.MaxNames, "names of jobs that a board's page tells apart"},
	{"board.MaxShadowLine", board.MaxShadowLine, "of the next jobs that are compared with those of a policy in the shadow, where one of the two orders depends on counts"},
	{"board.MaxShadowKeys", board.MaxShadowKeys, "keys that are looked at for that"},
	{"board.MaxDisagreements", board.MaxDisagreements, "jobs that the report of a policy in the shadow names"},
	{"api.MaxCalls", api.MaxCalls, "calls that the server works on at once; others wait in a queue"},
	{"api.MaxTenantCalls", api.MaxTenantCalls, "of these, calls of one tenant"},
	{"api.MaxQueued", api.MaxQueued, "calls that wait in the queues; then the longest queue loses its last one"},
	{"api.MaxLongCalls", api.MaxLongCalls, "calls that only wait, for jobs, events or a slow store; half of them one tenant's"},
	{"api.MinBackupRate", api.MinBackupRate, "bytes a second that a backup reads at least"},
	{"board.GatherFor", board.GatherFor, "that an event waits until those who stream a board's events are told of it together, at most; a few are told at once"},
	{"admin.MaxImport", admin.MaxImport, "records of the catalog in one call of ImportCatalog"},
	{"embedded.DiskReserve", embedded.DiskReserve, "bytes of a disk (or an eighth of it) below which the embedded store takes no more posts and logs"},
	{"host.MaxMetricsTenants", host.MaxMetricsTenants, "tenants whose boards without metrics of their own have a sum of theirs in `/metrics`"},
	{"config.MaxMetricsBoards", config.MaxMetricsBoards, "the largest `metrics_boards`"},
	{"api.MaxPassed", api.MaxPassed, "calls at once that a server passes on to one other server of its fleet"},
	{"config.MaxDrainDelay", config.MaxDrainDelay, "the longest `drain_delay`"},
	{"config.MinMetricsEvery", config.MinMetricsEvery, "the shortest `metrics every`"},
	{"config.MaxMetricsEvery", config.MaxMetricsEvery, "the longest"},
	{"host.MaxStart", host.MaxStart, "that a server which starts waits for its boards before it says that it is ready all the same"},
	{"host.OpeningStart", host.OpeningStart, "that it waits for boards of a store that opens one after the other; who calls one of them has it opened before the rest"},
	{"host.MaxMoveWait", host.MaxMoveWait, "that a move waits at most for claims that cannot come along"},
	{"record.MaxEnded", record.MaxEnded, "claims of one job, the last that were abandoned or trashed, which are known again in a store to which the board has moved"},
	{"host.FailedAfter", host.FailedAfter, "for which a backend may fail before a server is not ready"},
	{"catalog.MaxSilence", catalog.MaxSilence, "without an answer of the catalog's store, after which its tokens are refused"},
	{"tenant.MinSecret", tenant.MinSecret, "characters of a secret, at least"},
	{"tenant.MaxSecret", tenant.MaxSecret, "characters of a secret, at most"},
}

// moduleLimits are those that authors of policies can meet.
var moduleLimits = []struct {
	name  string
	value any
	text  string
}{
	{"module.DefaultBytes", module.DefaultBytes, "bytes of a module, unless it is allowed more"},
	{"module.MaxBytes", module.MaxBytes, "bytes of a module, whatever is allowed"},
	{"module.DefaultMemoryPages", module.DefaultMemoryPages, "pages of 64 KiB of its memory, unless it is allowed more"},
	{"module.MaxMemoryPages", module.MaxMemoryPages, "pages of its memory, whatever is allowed"},
	{"module.MaxTypes", module.MaxTypes, "types"},
	{"module.MaxParams", module.MaxParams, "parameters of a function"},
	{"module.MaxResults", module.MaxResults, "results of a function"},
	{"module.MaxImports", module.MaxImports, "imports"},
	{"module.MaxFunctions", module.MaxFunctions, "functions"},
	{"module.MaxTable", module.MaxTable, "elements of its table"},
	{"module.MaxGlobals", module.MaxGlobals, "globals"},
	{"module.MaxExports", module.MaxExports, "exports"},
	{"module.MaxElementSegments", module.MaxElementSegments, "element segments"},
	{"module.MaxDataSegments", module.MaxDataSegments, "data segments"},
	{"module.MaxCustomSections", module.MaxCustomSections, "custom sections"},
	{"module.MaxName", module.MaxName, "bytes of the name of an import or export"},
	{"module.MaxBody", module.MaxBody, "bytes of a function"},
	{"module.MaxLocals", module.MaxLocals, "locals of a function, parameters included"},
	{"module.MaxNesting", module.MaxNesting, "blocks in blocks"},
	{"module.MaxOperands", module.MaxOperands, "operands at the same time"},
	{"module.MaxBranchTable", module.MaxBranchTable, "labels of one br_table"},
	{"module.MaxBranches", module.MaxBranches, "labels of all branches of a function"},
	{"module.MaxBlockLocals", module.MaxBlockLocals, "blocks of a function times its locals"},
	{"module.MaxModuleBlocks", module.MaxModuleBlocks, "the same, of all functions together"},
	{"wasm.MaxQueued", wasm.MaxQueued, "modules of one tenant that wait to be compiled"},
	{"wasm.CompileTime", wasm.CompileTime, "of a processor, which compiling a module may take"},
	{"wasm.CompileMemory", int64(wasm.CompileMemory), "bytes of address space for it"},
	{"wasm.MaxQueueTime", wasm.MaxQueueTime, "the longest that one waits"},
	{"meter.MaxStack", meter.MaxStack, "slots for the frames of all running functions: 64 each, and one for each parameter, local and operand"},
	{"board.BreakerFaults", board.BreakerFaults, "faults in a minute, after which a policy is left alone for a while"},
	{"board.BreakerRest", board.BreakerRest, "the first time; it doubles"},
	{"board.BreakerLongest", board.BreakerLongest, "the longest"},
	{"policy.MaxBatch", policy.MaxBatch, "jobs or keys of a batch"},
	{"policy.MaxManifest", policy.MaxManifest, "bytes of a manifest"},
	{"policy.MaxPolicyName", policy.MaxPolicyName, "bytes of the name or version in it"},
	{"policy.MaxPatterns", policy.MaxPatterns, "labels that it names, of jobs or of workers"},
	{"policy.MaxFacts", policy.MaxFacts, "facts"},
	{"policy.MaxFactText", policy.MaxFactText, "bytes of a fact of text; a longer one counts as absent"},
	{"policy.MaxParameters", policy.MaxParameters, "parameters"},
	{"policy.MaxReasons", policy.MaxReasons, "reasons"},
	{"policy.MaxReason", policy.MaxReason, "bytes of a reason"},
	{"policy.MinTick", policy.MinTick, "the finest tick"},
	{"policy.MaxTick", policy.MaxTick, "the longest tick"},
	{"policy.MaxPeriod", policy.MaxPeriod, "the longest period; periods are whole seconds"},
	{"policy.MaxValueItems", policy.MaxValueItems, "items of a list or map that a parameter is set to"},
	{"policy.MaxValueText", policy.MaxValueText, "bytes of one text that a parameter is set to"},
	{"block.MaxParameters", policyblock.MaxParameters, "bytes of all parameters in a block"},
}

func TestModuleLimits(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	out.WriteString("| limit | of what | constant |\n|---|---|---|\n")
	listed := map[string]bool{}
	for _, l := range moduleLimits {
		listed[l.name] = true
		fmt.Fprintf(&out, "| %s | %s | `%s` |\n", size(l.value), l.text, l.name)
	}
	for _, dir := range []string{"host/wasm", "host/wasm/meter", "host/wasm/module", "sdk/policy", "sdk/policy/block"} {
		for _, name := range limitsIn(t, filepath.Join(testserver.Root(t), filepath.FromSlash(dir))) {
			if full := filepath.Base(dir) + "." + name; !listed[full] {
				t.Errorf("the limit %s is not in the table of docs/policies.md: add it to moduleLimits in this test", full)
			}
		}
	}
	generated(t, "policies.md", "module limits", out.String())
}

func TestLimits(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	out.WriteString("| limit | of what | constant |\n|---|---|---|\n")
	listed := map[string]bool{}
	for _, l := range limits {
		listed[l.name] = true
		fmt.Fprintf(&out, "| %s | %s | `%s` |\n", size(l.value), l.text, l.name)
	}
	for _, dir := range []string{"sdk/job", "sdk/driver", "host", "host/api", "host/audit", "host/board", "host/catalog", "host/chart", "host/config", "host/fleet", "host/identity", "host/recording", "host/replay", "host/tenant"} {
		for _, name := range limitsIn(t, filepath.Join(testserver.Root(t), filepath.FromSlash(dir))) {
			if full := filepath.Base(dir) + "." + name; !listed[full] {
				t.Errorf("the limit %s is not in the table of docs/operating.md: add it to limits in this test", full)
			}
		}
	}
	generated(t, "operating.md", "limits", out.String())
}

func size(value any) string {
	switch v := value.(type) {
	case time.Duration:
		if v >= 48*time.Hour {
			return fmt.Sprintf("%d days", v/(24*time.Hour))
		}
		if v%time.Hour == 0 {
			return fmt.Sprintf("%d h", v/time.Hour)
		}
		return fmt.Sprintf("%v s", v.Seconds())
	case int:
		switch {
		case v >= 1<<20 && v%(1<<20) == 0:
			return fmt.Sprintf("%d Mi", v>>20)
		case v >= 1<<10 && v%(1<<10) == 0:
			return fmt.Sprintf("%d Ki", v>>10)
		}
		return fmt.Sprint(v)
	}
	return fmt.Sprint(value)
}

// limitsIn returns the exported constants of a package whose names say that they
// are limits.
func limitsIn(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources in %s: %v", dir, err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, read(t, path), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			constants, ok := d.(*ast.GenDecl)
			if !ok || constants.Tok != token.CONST || strings.HasSuffix(path, "_test.go") {
				continue
			}
			for _, spec := range constants.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if regexp.MustCompile(`^(Max|Min|DefaultMax)[A-Z]`).MatchString(name.Name) {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

// TestLogEvents writes the names of the log's lines.
func TestLogEvents(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	out.WriteString("| event | text |\n|---|---|\n")
	for _, e := range logevent.All() {
		fmt.Fprintf(&out, "| `%s` | %s |\n", e.Name, e.Text)
	}
	generated(t, "log-events.md", "log events", out.String())
}

// TestSettings compares the table of settings with the words that the reader of
// the configuration asks for, and with the defaults that it fills in.
func TestSettings(t *testing.T) {
	t.Parallel()
	root := testserver.Root(t)
	reader := ""
	for _, name := range []string{"read.go", "token.go", "rule.go", "books.go", "issuer.go", "tracing.go", "metrics.go", "audit.go", "server.go", "schedule.go", "pinned.go", "fleet.go", "webhook.go"} {
		reader += read(t, filepath.Join(root, "host", "config", name))
	}
	asks := regexp.MustCompile(`\.(?:text|texts|digest|path|truth|object|choice|duration|claim|fraction|value|bytes|whole|number|integer|count|single|several|named)\("(\w+)"|certificate\(s, "(\w+)"`)
	page := read(t, filepath.Join(root, "docs", "operating.md"))
	rows := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|([^|]*)\\|").FindAllStringSubmatch(page, -1) {
		rows[row[1]] = strings.TrimSpace(row[2])
	}
	known := map[string]bool{}
	for _, m := range asks.FindAllStringSubmatch(reader, -1) {
		name := m[1] + m[2]
		known[name] = true
		found := false
		for row := range rows {
			found = found || slices.Contains(strings.Fields(row), name)
		}
		if !found {
			t.Errorf("the setting %q is read, and missing in the table of docs/operating.md", name)
		}
	}
	var limits config.Limits
	for _, limit := range limits.Each() {
		known[limit.Name] = true
	}
	if len(known) < 20 {
		t.Fatalf("only %d settings found in host/config: this test no longer understands it", len(known))
	}
	for row := range rows {
		if strings.HasPrefix(row, "boardd_") {
			continue
		}
		for word := range strings.FieldsSeq(row) {
			if !known[word] && !strings.HasPrefix(word, `"`) {
				t.Errorf("docs/operating.md has a setting %q that nothing reads", word)
			}
		}
	}
	d := config.Dev("").Boards[0]
	for name, want := range map[string]string{
		"listen": "`" + config.DefaultListen + "`", "board lease": short(d.Lease), "board max_lease": short(d.MaxLease),
		"board idempotency_window": short(d.IdempotencyWindow), "board allow_no_expiry": fmt.Sprintf("`%v`", d.AllowNoExpiry),
		"audit keep": short(config.DefaultAuditKeep), "audit max_bytes": fmt.Sprintf("`%dGiB`", config.DefaultAuditBytes>>30), "audit calls": "`" + config.AuditChanges + "`",
		"webhook timeout": short(webhook.DefaultTimeout),
	} {
		if rows[name] != want {
			t.Errorf("docs/operating.md: the default of %q is %s, the table says %q", name, want, rows[name])
		}
	}
}

func short(d time.Duration) string {
	text := strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
	if d < time.Minute {
		text = d.String()
	}
	return "`" + text + "`"
}

// TestAPI writes the tables of docs/api.md from the schema and the table of
// roles.
func TestAPI(t *testing.T) {
	t.Parallel()
	file := boarddv1.File_boardd_v1_boardd_proto
	describeService(t, file, "calls", "messages")
	describeService(t, boarddv1.File_boardd_v1_admin_proto, "admin calls", "admin messages")
	generated(t, "api.md", "enums", enums(file))
	generated(t, "api.md", "roles", roles(t))
}

// describeService writes the calls and the messages of one schema.
func describeService(t *testing.T, file protoreflect.FileDescriptor, callsName, messagesName string) {
	t.Helper()
	comments := commentsOf(read(t, filepath.Join(testserver.Root(t), "sdk", filepath.FromSlash(file.Path()))))
	var calls strings.Builder
	shown := map[protoreflect.FullName]bool{}
	methods := file.Services().Get(0).Methods()
	for i := range methods.Len() {
		m := methods.Get(i)
		shown[m.Input().FullName()], shown[m.Output().FullName()] = true, isAnswer(m.Output())
		stream := ""
		if m.IsStreamingServer() {
			stream = " (a stream of them)"
		}
		fmt.Fprintf(&calls, "\n### %s\n\nfor %s\n\n- request: %s\n- answer: %s%s\n", m.Name(), rolesOf(t, string(m.Name())),
			fields(m.Input(), comments), answer(m.Output(), comments), stream)
	}
	generated(t, "api.md", callsName, calls.String()+"\n")

	var messages strings.Builder
	for i := range file.Messages().Len() {
		m := file.Messages().Get(i)
		if m.Fields().Len() == 0 || shown[m.FullName()] {
			continue
		}
		fmt.Fprintf(&messages, "\n### %s\n\n| field | type | |\n|---|---|---|\n", m.Name())
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			fmt.Fprintf(&messages, "| `%s` | %s | %s |\n", f.JSONName(), kind(f, comments), strings.ReplaceAll(comments[string(m.Name())+"."+string(f.Name())], "|", `\|`))
		}
	}
	generated(t, "api.md", messagesName, messages.String()+"\n")
}

// isAnswer reports whether a message is the answer of a call and nothing else: a stream may
// be of messages that others have as well.
func isAnswer(m protoreflect.MessageDescriptor) bool {
	return strings.HasSuffix(string(m.Name()), "Response")
}

func answer(m protoreflect.MessageDescriptor, comments map[string]string) string {
	if !isAnswer(m) {
		return fmt.Sprintf("[%s](#%s)", m.Name(), strings.ToLower(string(m.Name())))
	}
	return fields(m, comments)
}

func fields(m protoreflect.MessageDescriptor, comments map[string]string) string {
	var list []string
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		text := "`" + f.JSONName() + "` " + kind(f, comments)
		if c := comments[string(m.Name())+"."+string(f.Name())]; c != "" {
			text += " (" + c + ")"
		}
		list = append(list, text)
	}
	if list == nil {
		return "no fields"
	}
	return strings.Join(list, ", ")
}

// kind names the type of a field as it is in JSON.
func kind(f protoreflect.FieldDescriptor, comments map[string]string) string {
	if f.IsMap() {
		return "object of " + kind(f.MapValue(), comments) + "s"
	}
	var name string
	switch f.Kind() { // the others are not in the schema
	case protoreflect.StringKind:
		name = "string"
	case protoreflect.BoolKind:
		name = "boolean"
	case protoreflect.Int32Kind:
		name = "number"
	case protoreflect.Int64Kind:
		name = "string of digits"
	case protoreflect.BytesKind:
		name = "base64"
		if comments["json:"+string(f.Parent().Name())+"."+string(f.Name())] != "" {
			name = "JSON"
		}
	case protoreflect.EnumKind:
		name = fmt.Sprintf("[%s](#values)", f.Enum().Parent().Name())
	case protoreflect.MessageKind:
		switch f.Message().Name() {
		case "Timestamp":
			name = "time"
		case "FieldMask":
			name = "names of fields, joined by commas"
		case "Duration":
			name = "duration"
		default:
			// An answer is shown at its call.
			name = fmt.Sprintf("[%s](#%s)", f.Message().Name(), strings.ToLower(strings.TrimSuffix(string(f.Message().Name()), "Response")))
		}
	default:
		name = "?" + f.Kind().String()
	}
	if f.IsList() {
		return "list of " + name
	}
	return name
}

var (
	protoMessage = regexp.MustCompile(`^message (\w+) \{`)
	protoField   = regexp.MustCompile(`^  (?:repeated |optional )?[\w.<>, ]+ (\w+) = \d+(?: \[([^\]]*)\])?;(?:\s*// (.*))?$`)
)

// commentsOf returns what the schema says behind a field, by Message.field, and
// marks those that hold JSON.
func commentsOf(schema string) map[string]string {
	comments := map[string]string{}
	message := ""
	for line := range strings.Lines(schema) {
		line = strings.TrimRight(line, "\n")
		if m := protoMessage.FindStringSubmatch(line); m != nil {
			message = m[1]
		}
		if f := protoField.FindStringSubmatch(line); f != nil {
			comments[message+"."+f[1]] = f[3]
			if strings.Contains(f[2], "(json)") {
				comments["json:"+message+"."+f[1]] = "yes"
			}
		}
	}
	return comments
}

// enums lists the names of all values but those that stand for "none".
func enums(file protoreflect.FileDescriptor) string {
	var out strings.Builder
	out.WriteString("| type | values |\n|---|---|\n")
	for i := range file.Messages().Len() {
		m := file.Messages().Get(i)
		if m.Enums().Len() == 0 {
			continue
		}
		var names []string
		values := m.Enums().Get(0).Values()
		for j := range values.Len() {
			names = append(names, "`"+string(values.Get(j).Name())+"`")
		}
		fmt.Fprintf(&out, "| %s | %s |\n", m.Name(), strings.Join(names, " "))
	}
	return out.String()
}

func rolesOf(t *testing.T, call string) string {
	t.Helper()
	var may []string
	for _, role := range tenant.Roles() {
		if allowed(role, call) {
			may = append(may, "`"+string(role)+"`")
		}
	}
	if may == nil {
		t.Errorf("nobody may call %s", call)
	}
	return strings.Join(may, ", ")
}

// roles is the table of who may call what.
func roles(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	out.WriteString("| call |")
	for _, role := range tenant.Roles() {
		fmt.Fprintf(&out, " %s |", role)
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(tenant.Roles())) + "\n")
	calls := []string{tenant.MetricsCall, tenant.ProfileCall}
	for _, file := range []protoreflect.FileDescriptor{boarddv1.File_boardd_v1_boardd_proto, boarddv1.File_boardd_v1_admin_proto} {
		methods := file.Services().Get(0).Methods()
		for i := range methods.Len() {
			calls = append(calls, string(methods.Get(i).Name()))
		}
	}
	for _, call := range calls {
		fmt.Fprintf(&out, "| %s |", call)
		for _, role := range tenant.Roles() {
			mark := ""
			if allowed(role, call) {
				mark = "yes"
			}
			fmt.Fprintf(&out, " %s |", mark)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// TestDependencies wants a paragraph for each module that the code imports.
func TestDependencies(t *testing.T) {
	t.Parallel()
	root := testserver.Root(t)
	rationale := read(t, filepath.Join(root, "RATIONALE.md"))
	_, rationale, found := strings.Cut(rationale, "\n## The dependencies\n")
	if !found {
		t.Fatal(`RATIONALE.md has no section "The dependencies"`)
	}
	table := read(t, filepath.Join(root, "internal", "imports", "table_test.go"))
	_, table, _ = strings.Cut(table, "var outside = ")
	modules := regexp.MustCompile(`(?m)^\t"([^"]+)":`).FindAllStringSubmatch(table, -1)
	direct := regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(read(t, filepath.Join(root, "go.mod")), -1)
	if len(modules) < 10 {
		t.Fatalf("only %d modules in internal/imports/table_test.go: this test no longer understands it", len(modules))
	}
	for _, m := range append(modules, direct...) {
		if !mentions(rationale, m[1]) {
			t.Errorf("RATIONALE.md says nothing of why there is %s", m[1])
		}
	}
}

// mentions reports whether a heading names a module, in full or, after the first
// of its family, by its last part.
func mentions(rationale, path string) bool {
	for line := range strings.Lines(rationale) {
		if !strings.HasPrefix(line, "### ") {
			continue
		}
		words := strings.FieldsFunc(strings.TrimPrefix(line, "### "), func(r rune) bool { return r == ' ' || r == ',' || r == '\n' })
		family := slices.ContainsFunc(words, func(w string) bool {
			return strings.HasPrefix(w, strings.SplitN(path, "/", 2)[0]+"/")
		})
		for _, word := range words {
			if word == path || family && (word == filepath.Base(path) || strings.HasSuffix(path, "/"+word)) {
				return true
			}
		}
	}
	return false
}

func allowed(role tenant.Role, call string) bool {
	return (&tenant.Principal{Tenant: tenant.Default, Roles: []tenant.Role{role}}).May(call, "default")
}

// TestNesting holds the API to what TaskFlow may have on a board: a posting is a map, and
// its details, which lie in it, are shown however deep they are.
func TestNesting(t *testing.T) {
	t.Parallel()
	if wirejson.MaxRawNesting != taskflow.MaxNesting-1 {
		t.Errorf("the API shows %d levels of details, and a posting may have %d", wirejson.MaxRawNesting, taskflow.MaxNesting-1)
	}
	text := fmt.Sprintf("| %d | levels of maps and lists in a posting, which is the first; of its details the API shows all %d, and takes %d from a caller",
		taskflow.MaxNesting, wirejson.MaxRawNesting, job.MaxDetailsNest)
	if page := read(t, filepath.Join(testserver.Root(t), "docs", "taskflow.md")); !strings.Contains(page, text) {
		t.Errorf("docs/taskflow.md does not say: %s", text)
	}
}
