package api

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/boardd/boardd/host"
)

// policyMetrics reads what the modules use that tenants brought.
type policyMetrics struct {
	host *host.Host
}

var (
	descPolicyProcesses = newDesc("boardd_policy_processes", "Processes that run modules which tenants brought.")
	descPolicyMemory    = newDesc("boardd_policy_memory_bytes", "Memory that the processes of policies are charged.")
	descCompilations    = newDesc("boardd_policy_compilations", "Modules that are being compiled now, or wait for that.", "state")
	descPolicyRefused   = newDesc("boardd_policy_refused_total", "Processes and compilations of modules that were refused, since there were too many.")
)

// Describe names the metrics.
func (*policyMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descPolicyProcesses, descPolicyMemory, descCompilations, descPolicyRefused} {
		to <- d
	}
}

// Collect reads them.
func (m *policyMetrics) Collect(to chan<- prometheus.Metric) {
	u := m.host.PolicyUse()
	gauge := func(desc *prometheus.Desc, value int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	gauge(descPolicyProcesses, u.Processes)
	gauge(descPolicyMemory, u.Memory)
	gauge(descCompilations, int64(u.Compiling), "running")
	gauge(descCompilations, int64(u.Queued), "queued")
	to <- prometheus.MustNewConstMetric(descPolicyRefused, prometheus.CounterValue, float64(u.Refused))
}
