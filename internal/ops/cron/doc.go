// Package cron says by what is recorded whether cleanup and the other layers run as often as they should, and what cron
// lines need to run them. What a layer is, and how its lines are written, belongs to the package internal/cron.
package cron
