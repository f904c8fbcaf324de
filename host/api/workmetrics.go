package api

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// workMetrics is what the server tells of calls of Work, those of all boards together.
type workMetrics struct {
	waiting prometheus.Gauge
	waits   *prometheus.CounterVec
	items   *prometheus.HistogramVec
}

// The outcomes of a call of Work that could wait.
const (
	waitClaim  = "claim"
	waitNotice = "notice"
	waitEmpty  = "empty"
	waitEnded  = "ended"
)

// The items of a call of Work.
const (
	itemEnding    = "ending"
	itemExtension = "extension"
	itemClaim     = "claim"
	itemNotice    = "notice"
)

func newWorkMetrics() *workMetrics {
	m := &workMetrics{
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "boardd_workers_waiting", Help: "Calls of Work under way that wait until there is a claim or a notice.",
		}),
		waits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "boardd_worker_waits_total", Help: "Calls of Work that could wait, by what they got; ended: the caller went away, or the call was ended or refused.",
		}, []string{"outcome"}),
		items: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "boardd_worker_items", Help: "How many endings, extensions, claims and notices a call of Work had.",
			Buckets: []float64{0, 1, 4, 16, 64, 256, 1000},
		}, []string{"item"}),
	}
	for _, outcome := range []string{waitClaim, waitNotice, waitEmpty, waitEnded} {
		m.waits.WithLabelValues(outcome)
	}
	for _, item := range []string{itemEnding, itemExtension, itemClaim, itemNotice} {
		m.items.WithLabelValues(item)
	}
	return m
}

// waited counts a call that could wait and does so no more.
func (m *workMetrics) waited(got *board.WorkResponse, err error) {
	m.waiting.Dec()
	outcome := waitEmpty
	switch {
	case err != nil:
		outcome = waitEnded
	case len(got.Claims) > 0:
		outcome = waitClaim
	case len(got.Notices) > 0:
		outcome = waitNotice
	}
	m.waits.WithLabelValues(outcome).Inc()
}

// call counts a call that was answered.
func (m *workMetrics) call(asked *boarddv1.WorkRequest, got *board.WorkResponse) {
	m.items.WithLabelValues(itemEnding).Observe(float64(len(asked.GetEndings())))
	m.items.WithLabelValues(itemExtension).Observe(float64(len(asked.GetExtend())))
	m.items.WithLabelValues(itemClaim).Observe(float64(len(got.Claims)))
	m.items.WithLabelValues(itemNotice).Observe(float64(len(got.Notices)))
}
