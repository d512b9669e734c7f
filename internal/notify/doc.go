// Package notify tells people and watchdogs how an unattended run went: Slack,
// PagerDuty, Alertmanager, a webhook of one's own, and a ping that says that a
// cron line is alive. People hear of trouble and of its end; only pings speak
// when all is well.
//
// A notification never decides anything: what goes wrong with it is an error to
// print as a warning, within Limit. Addresses are secrets here and stand in no
// error and no trace. No figure, no clock and no judgement of a run enters this
// room; the caller hands in what to say.
package notify
