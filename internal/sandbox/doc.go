// Package sandbox holds the words of sbx: what a sandbox is, which states and
// outcomes exist, how ages, durations and sizes are written, how one is named.
//
// The lists are closed: code, JSON, docs and tests use these spellings and no
// others. Nothing that reads a file, a clock, the network or the environment
// enters this room, and nothing beyond the standard library.
package sandbox
