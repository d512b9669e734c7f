// Package cron is the four layers that clean without an operator, as data: what
// each runs and how often, their text as crontab lines and systemd units, how a
// recorded run is known as one of them, and whether a layer is overdue.
//
// Everything here is a pure function of what is handed in. No file, no process, no
// clock and no journal enters this room; nothing here installs or runs a line.
package cron
