// Package cron is the four layers that clean without an operator, as data: what
// each runs and how often, their text as crontab lines and systemd units, how a
// recorded run is known as one of them, and whether a layer is overdue.
//
// How many sandboxes a run from cron may end at most is not decided here: each run, from cron or not, is
// bound by safety.Limits, which ops.Env.Limits makes of the configuration (limits.max_delete and limits.max_fraction).
//
// Everything here is a pure function of what is handed in. No file, no process, no
// clock and no journal enters this room; nothing here installs or runs a line.
package cron
