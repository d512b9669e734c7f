// Package sandbox defines the terms of sbx: what a sandbox is, the states and outcomes, the
// formats of ages, durations and sizes, and how a sandbox is named.
//
// The lists are closed: code, JSON, docs and tests use these spellings and no others. The
// package reads no file, clock, network or environment, and imports only the standard library.
package sandbox
