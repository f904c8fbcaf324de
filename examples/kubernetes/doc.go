// Package kubernetes renders the chart in the folder boardd with Helm's own code and looks
// at what comes out: its tests are all there is. It is a module of its own, so that boardd
// depends neither on Helm nor on Kubernetes.
package kubernetes
