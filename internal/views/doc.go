// Package views says how results look: the documents, pages and sentences of what the rooms
// below give, defined once for the command line, the dashboard and reports. A type whose name
// ends in Item or Keys is a JSON document: its comments are the descriptions in docs/schemas.
//
// A view is made from values alone. It asks no provider, reads no store and decides nothing
// about a sandbox; what was decided comes with the value.
package views
