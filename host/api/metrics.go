package api

import (
	"context"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/board"
)

// scrapeWithin bounds what one scrape costs.
const scrapeWithin = 5 * time.Second

// metrics is what the server tells of itself, in a registry of its own.
type metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.HistogramVec
	refused  *prometheus.CounterVec
	work     *workMetrics
}

func newMetrics(h *host.Host) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "boardd_call_seconds", Help: "How long calls took, without the time in which they waited for jobs, events or the end of jobs.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"call", "code"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "boardd_refused_requests_total", Help: "Requests that were refused before they reached a call.",
		}, []string{"code"}),
		work: newWorkMetrics(),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "boardd_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": h.Version(), "go": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(m.calls, m.refused, m.work.waiting, m.work.waits, m.work.items, build, &boards{host: h}, &policyMetrics{host: h}, &openBoards{host: h},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watch shows how many streams are open.
func (m *metrics) watch(streams *atomic.Int64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "boardd_streams", Help: "Streams that are open now."},
		func() float64 { return float64(streams.Load()) }))
}

func (m *metrics) call(call, code string, took time.Duration) {
	m.calls.WithLabelValues(call, code).Observe(took.Seconds())
}

var (
	descCalls = newDesc("boardd_calls", "Calls that go on now: working, only waiting, or queued until others end.", "state")
	descShed  = newDesc("boardd_shed_calls_total", "Calls that were refused because the server had too many.", "reason")
)

// Describe names the metrics.
func (s *admission) Describe(to chan<- *prometheus.Desc) {
	to <- descCalls
	to <- descShed
}

// Collect reads them.
func (s *admission) Collect(to chan<- prometheus.Metric) {
	l := s.load()
	for state, n := range map[string]int{"working": l.working, "waiting": l.waiting, "queued": l.queued} {
		to <- prometheus.MustNewConstMetric(descCalls, prometheus.GaugeValue, float64(n), state)
	}
	for reason, n := range map[string]int64{"queue_full": l.full, "waited_too_long": l.late} {
		to <- prometheus.MustNewConstMetric(descShed, prometheus.CounterValue, float64(n), reason)
	}
}

// budgets are what the gate shares out.
type budgets struct{ bytes, passed, work *budget }

var (
	descBytes   = newDesc("boardd_request_bytes", "Bytes of requests that are held in memory now; small requests are not counted.")
	descNoBytes = newDesc("boardd_request_bytes_refused_total", "Requests that were refused because too many bytes of others were under way.")
	descWork    = newDesc("boardd_work", "Items of calls that are worked on now; calls with few are not counted.")
	descNoWork  = newDesc("boardd_work_refused_total", "Calls that were refused because too many items of others were worked on.")
)

// Describe names the metrics.
func (*budgets) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descBytes, descNoBytes, descWork, descNoWork} {
		to <- d
	}
}

// Collect reads them.
func (b *budgets) Collect(to chan<- prometheus.Metric) {
	bytes, noBytes := b.bytes.held()
	passed, noPassed := b.passed.held()
	work, noWork := b.work.held()
	to <- prometheus.MustNewConstMetric(descBytes, prometheus.GaugeValue, float64(bytes+passed))
	to <- prometheus.MustNewConstMetric(descNoBytes, prometheus.CounterValue, float64(noBytes+noPassed))
	to <- prometheus.MustNewConstMetric(descWork, prometheus.GaugeValue, float64(work))
	to <- prometheus.MustNewConstMetric(descNoWork, prometheus.CounterValue, float64(noWork))
}

// handler serves GET /metrics.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2, Timeout: 2 * scrapeWithin})
}

// boards reads boards and backends when it is asked.
type boards struct {
	host *host.Host
}

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	descIsReady     = newDesc("boardd_ready", "1 if /readyz says that callers may be sent here.")
	descBoards      = newDesc("boardd_boards", "Boards that are served.")
	descReady       = newDesc("boardd_board_ready", "1 if the board can serve.", "tenant", "board")
	descLoss        = newDesc("boardd_board_unacknowledged_loss", "1 if the store has lost changes of the board that it had acknowledged, and nobody has said that he knows.", "tenant", "board")
	descJobs        = newDesc("boardd_jobs", "Jobs on the board.", "tenant", "board", "state")
	descOldest      = newDesc("boardd_oldest_ready_seconds", "How long the oldest job that could be claimed has waited.", "tenant", "board")
	descCounted     = newDesc("boardd_board_counts_age_seconds", "How long ago the board's store was asked for what it answered last of how many jobs are in the trash, complete or corrupt. Absent: it has not answered yet, or the board rests.", "tenant", "board")
	descEvents      = newDesc("boardd_job_events_total", "What this server did to jobs.", "tenant", "board", "event")
	descWaits       = newDesc("boardd_job_wait_seconds", "How long jobs that were claimed here could have been, since they were posted, due, given back or last changed.", "tenant", "board")
	descRuns        = newDesc("boardd_job_run_seconds", "How long jobs that ended or went to the trash here were claimed until then.", "tenant", "board")
	descDeliveries  = newDesc("boardd_webhook_deliveries_total", "Tries of this server to deliver what is told by webhooks, on the board that has the deliveries; failed: it is tried again.", "tenant", "board", "outcome")
	descUndelivered = newDesc("boardd_webhook_oldest_undelivered_seconds", "How long ago the oldest delivery was made that is still open, on the board that has the deliveries.", "tenant", "board")
	descUntold      = newDesc("boardd_webhook_untold_seconds", "For how long what happens on a board that has webhooks cannot be made deliveries.", "tenant", "board")
	descWaiting     = newDesc("boardd_waiting_claims", "Claim calls that wait for a job now.", "tenant", "board")
	descApply       = newDesc("boardd_driver_apply_seconds", "How long the driver took for batches of changes.", "backend", "driver")
	descRestarts    = newDesc("boardd_driver_restarts_total", "How often the driver's process was started again.", "backend", "driver")
	descAnswers     = newDesc("boardd_backend_answers", "1 if the store answered when it was asked last, as it is every second.", "backend", "driver")
	descRunning     = newDesc("boardd_driver_running", "1 if the driver was started.", "backend", "driver")
	descFull        = newDesc("boardd_backend_full", "1 if the store has no room left, so that posts are refused.", "backend", "driver")
	descUsed        = newDesc("boardd_backend_used_bytes", "How much the store holds, with all that lies there beside boards, as it says itself; of several servers of one store, the fullest. Absent: it does not say.", "backend", "driver")
	descLimit       = newDesc("boardd_backend_limit_bytes", "At how much the store is full, as it says itself. Absent: it has no limit, or does not say.", "backend", "driver")
	descFree        = newDesc("boardd_disk_free_bytes", "Room on the disk of the data folder, and of each embedded store's.", "path")
	descSize        = newDesc("boardd_disk_bytes", "How large these disks are.", "path")
	descCatalog     = newDesc("boardd_catalog_records", "Records of the catalog that this server knows.")
	descLost        = newDesc("boardd_catalog_lost_records", "Records of the catalog that the store has lost without their having been deleted. Above 0 nothing in the catalog can be changed.")
	descAge         = newDesc("boardd_catalog_age_seconds", "How long ago the catalog's store last answered; -1: not yet.")
	descKeys        = newDesc("boardd_issuer_keys_age_seconds", "How long ago an identity provider last gave its keys; -1: not yet.", "issuer")
)

// Describe names the metrics.
func (*boards) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descIsReady, descBoards, descReady, descLoss, descJobs, descOldest, descCounted, descEvents, descWaits, descRuns, descWaiting,
		descDeliveries, descUndelivered, descUntold,
		descApply, descRestarts, descRunning, descAnswers, descFull, descUsed, descLimit, descFree, descSize, descKeys, descCatalog, descLost, descAge,
	} {
		to <- d
	}
}

// Collect reads them.
func (b *boards) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeWithin)
	defer cancel()
	for _, s := range b.host.Backends() {
		count, sum, atMost := s.Apply.Totals()
		to <- prometheus.MustNewConstHistogram(descApply, count, sum, atMost, s.Name, s.Driver)
		to <- prometheus.MustNewConstMetric(descRestarts, prometheus.CounterValue, float64(s.Restarts), s.Name, s.Driver)
		to <- prometheus.MustNewConstMetric(descRunning, prometheus.GaugeValue, truth(s.Running), s.Name, s.Driver)
		to <- prometheus.MustNewConstMetric(descAnswers, prometheus.GaugeValue, truth(s.Answers), s.Name, s.Driver)
		to <- prometheus.MustNewConstMetric(descFull, prometheus.GaugeValue, truth(s.Full), s.Name, s.Driver)
		for desc, bytes := range map[*prometheus.Desc]int64{descUsed: s.Usage.Used, descLimit: s.Usage.Limit} {
			if bytes > 0 {
				to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(bytes), s.Name, s.Driver)
			}
		}
	}
	for _, d := range b.host.Disks() {
		to <- prometheus.MustNewConstMetric(descFree, prometheus.GaugeValue, float64(d.Free), d.Path)
		to <- prometheus.MustNewConstMetric(descSize, prometheus.GaugeValue, float64(d.Size), d.Path)
	}
	for name, age := range b.host.IssuerKeys() {
		to <- prometheus.MustNewConstMetric(descKeys, prometheus.GaugeValue, ageSeconds(age), name)
	}
	if age, ok := b.host.CatalogAge(); ok {
		to <- prometheus.MustNewConstMetric(descAge, prometheus.GaugeValue, ageSeconds(age))
	}
	known, lost := b.host.CatalogRecords()
	to <- prometheus.MustNewConstMetric(descCatalog, prometheus.GaugeValue, float64(known))
	to <- prometheus.MustNewConstMetric(descLost, prometheus.GaugeValue, float64(lost))
	to <- prometheus.MustNewConstMetric(descIsReady, prometheus.GaugeValue, truth(b.host.Readiness().Err == nil))
	to <- prometheus.MustNewConstMetric(descBoards, prometheus.GaugeValue, float64(b.host.Serves()))
	for _, g := range b.host.Gauges(ctx, b.host.Settings().NamedBoards()) {
		collectBoard(to, g)
	}
}

func collectBoard(to chan<- prometheus.Metric, g host.Gauge) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{g.Tenant, g.Board}, labels...)...)
	}
	gauge(descReady, truth(g.Ready))
	gauge(descLoss, truth(g.Loss))
	if c := g.Counts; c != nil {
		gauge(descJobs, float64(c.Ready), "ready")
		gauge(descJobs, float64(c.Delayed), "delayed")
		gauge(descJobs, float64(c.Claimed), "claimed")
		gauge(descJobs, float64(c.Trashed), "trashed")
		gauge(descJobs, float64(c.Complete), "complete")
		gauge(descJobs, float64(c.Corrupt), "corrupt")
		age := 0.0
		if !c.OldestReadyAt.IsZero() {
			age = max(0, time.Since(c.OldestReadyAt).Seconds())
		}
		gauge(descOldest, age)
	}
	if !g.Counted.IsZero() {
		gauge(descCounted, max(0, time.Since(g.Counted).Seconds()))
	}
	gauge(descWaiting, float64(g.Waiting))
	collectHooks(to, g)
	for desc, h := range map[*prometheus.Desc]*board.Histogram{descWaits: g.Waits, descRuns: g.Runs} {
		if h != nil {
			count, sum, atMost := h.Totals()
			to <- prometheus.MustNewConstHistogram(desc, count, sum, atMost, g.Tenant, g.Board)
		}
	}
	for event, n := range g.Events {
		if n == 0 && g.Board == host.OtherBoards { // there may be as many of these as there are tenants
			continue
		}
		to <- prometheus.MustNewConstMetric(descEvents, prometheus.CounterValue, float64(n), g.Tenant, g.Board, event)
	}
}

// collectHooks shows what a board has to do with webhooks.
func collectHooks(to chan<- prometheus.Metric, g host.Gauge) {
	if g.Hooks == nil {
		return
	}
	age := func(desc *prometheus.Desc, since time.Time) {
		seconds := 0.0
		if !since.IsZero() {
			seconds = max(0, time.Since(since).Seconds())
		}
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, seconds, g.Tenant, g.Board)
	}
	if g.Hooks.Tells {
		age(descUntold, g.Hooks.Untold)
	}
	if g.Hooks.Sends {
		age(descUndelivered, g.Hooks.Undelivered)
	}
	for outcome, n := range g.Hooks.Tries {
		to <- prometheus.MustNewConstMetric(descDeliveries, prometheus.CounterValue, float64(n), g.Tenant, g.Board, outcome)
	}
}

// ageSeconds is an age in seconds; -1 for what has none yet.
func ageSeconds(age time.Duration) float64 {
	if age < 0 {
		return -1
	}
	return age.Seconds()
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
