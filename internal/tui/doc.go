// Package tui is the dashboard: what the verbs show, kept current, behind keys.
//
// It has one Bubble Tea model. Reads happen in commands, never in Update, and a command changes no
// state: it returns a message. The dashboard judges nothing; verdicts, tones and words are those of
// triage and views. Nothing here ends a sandbox.
package tui
