// Package metrics is what a run leaves for Prometheus: a handful of gauges and
// histograms from plain values, as text in a file or behind /metrics, and the
// figures of a cleanup by name.
//
// It is a writer and nothing else: no registry, no counter that lives on, no
// clock and no listener enters this room, and nothing untrusted: a label is a
// profile, an outcome or a version, never the name of a sandbox.
package metrics
