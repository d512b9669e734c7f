// Package output turns results into text: one list of columns per printable
// type gives the table, csv, tsv, json, ndjson, yaml, name, template and jq
// formats; errors, notes and progress go to stderr in one shape; text that
// comes from a sandbox or an API is made harmless on the way.
//
// The encoder of JSON is its own: a list is written while its items arrive, --columns chooses keys,
// and every control character is escaped; encoding/json does none of these.
//
// A command says what its document holds and adds to it; which bytes that
// makes is decided here. No provider, no policy and no exit of the process
// enters this room, and no raw byte of untrusted text leaves it.
package output
