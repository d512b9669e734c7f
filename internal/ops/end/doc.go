// Package end is what ends sandboxes and repairs records: plan, question and act of terminate, cleanup
// and reconcile, composed once for command line, runbook and dashboard.
package end
