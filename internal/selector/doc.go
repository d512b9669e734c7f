// Package selector decides which sandboxes a verb selects. Every command with selectors
// uses it, so that ls shows exactly what cleanup would end.
//
// It holds pure rules: flag texts are compiled once into a Selector, a Selector judges one
// sandbox at a time, and what it cannot judge is unknown with a reason, never a match.
// Providers, clocks and output do not belong here, and the stuck rule is passed in.
package selector
