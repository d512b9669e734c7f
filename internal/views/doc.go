// Package views says how results look: the documents, pages and sentences of what the rooms
// below give, defined once for the command line, the dashboard and reports. A type whose name
// ends in Item or Keys is a JSON document: its comments are the descriptions in docs/schemas.
// The order of its fields is that of the keys, a pointer may be null, and the tag `table` has the
// level and the heading of a column. Every key is present, but for `omitzero` beside the items.
// One function fills it from the values of the rooms below.
//
// A view is made from values alone. It asks no provider, reads no store and decides nothing
// about a sandbox; what was decided comes with the value.
package views
