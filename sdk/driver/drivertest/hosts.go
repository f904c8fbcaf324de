package drivertest

import (
	"github.com/boardd/boardd/sdk/job"
)

var trafficChecks = []check{
	{name: "traffic/holds", run: func(e *env) { e.alone().holds() }},
	{name: "traffic/watchers", run: func(e *env) { e.alone().watchers() }},
}

// hostsChecks have several drivers on one store at once.
var hostsChecks = []check{
	{name: "hosts/holds", run: ofCrowd((*crowd).holds)},
	{name: "hosts/watchers", run: ofCrowd((*crowd).watchers)},
	{name: "hosts/one", run: hostsOne},
}

// ofCrowd makes a check of what several hosts do together.
func ofCrowd(run func(*crowd)) func(*env) {
	return func(e *env) {
		if c := e.crowd(nil); c != nil {
			run(c)
		}
	}
}

// holds checks that what is posted beside each other stays apart: each job is as
// it was posted, held or not.
func (c *crowd) holds() {
	c.traffic()
	c.untouched()
	c.free()
	c.untouched()
}

// watchers checks that whoever watches is told of every change, in the order of
// their positions, and may go on from each on every host.
func (c *crowd) watchers() {
	list := c.witnesses()
	c.traffic()
	c.testify(list)
}

// hostsOne checks that a driver which declares so really has its store for itself.
func hostsOne(e *env) {
	if e.suite.harness.Hosts == nil || !e.suite.harness.OneHost {
		return // the checks beside this one say what there is to say
	}
	open := e.suite.harness.Hosts(e.T)
	first, err := open()
	if err != nil {
		e.Fatalf("a driver on a store of its own: %v", err)
	}
	h := &env{T: e.T, suite: e.suite, driver: first, name: e.name + "-alone"}
	e.Cleanup(h.close)
	h.join(nil)
	second, err := open()
	if err == nil {
		_, err = second.OpenBoard(e.Context(), e.suite.spec(h.name))
		if closed := second.Close(); closed != nil {
			e.Logf("Close of the second driver: %v", closed)
		}
	}
	if err == nil {
		e.Errorf("the driver declares that a store is for one at a time, and a second one opened it")
	}
	h.post()
	if kind := job.KindOf(err); err != nil && kind == job.OutcomeUnknown {
		e.Errorf("a second driver on the store was refused as %v: it changed nothing", kind)
	}
}
