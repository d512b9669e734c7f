// Package end is what ends sandboxes and repairs records: plan, question and act of terminate, cleanup
// and reconcile, composed once for command line, runbook and dashboard. What takes a sandbox out of their
// reach, keep, is here, too: it writes the label that their rules read.
package end
