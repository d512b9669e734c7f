// Package views says how results look: the columns, pages and sentences of what the rooms
// below give, defined once for the command line, the dashboard and reports.
//
// A view is made from values alone. It asks no provider, reads no store and decides nothing
// about a sandbox; what was decided comes with the value.
package views
