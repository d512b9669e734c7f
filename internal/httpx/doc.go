// Package httpx is the one HTTP client of sbx: plain net/http with what every
// call to a provider needs. It sends credentials, bounds every wait, caps what
// it reads, repeats what may be repeated, keeps to the pace a provider allows,
// and turns statuses into faults. Secrets never leave it in a text.
//
// No provider's paths, fields or meanings enter this room; a provider hands in
// what it knows as data (Options) and as one function (Options.Explain).
package httpx
