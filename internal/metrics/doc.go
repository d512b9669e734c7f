// Package metrics is what a run leaves for Prometheus: a handful of gauges and
// histograms from plain values, as text in a file, and the figures of a
// cleanup by name.
//
// It only writes: it has no registry, no lasting counter, no clock and no listener, and takes
// no untrusted text: a label is a profile, an outcome or a version, never the name of a
// sandbox.
package metrics
