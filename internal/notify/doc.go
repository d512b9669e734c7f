// Package notify reports how an unattended run went: to Slack, PagerDuty, a
// webhook, and by a ping that proves that a cron line is alive. People are notified of trouble
// and of its end; only pings report success.
//
// A notification never decides anything: its failure is an error to print as a warning, within
// Limit. Addresses are secrets and appear in no error and no trace. The text comes from the
// caller; this room judges nothing.
package notify
