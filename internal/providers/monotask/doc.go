// Package monotask speaks the sandbox API of MonoTask's agent worker, which runs
// on Cloudflare: stats, list, one sandbox, its logs and resources, delete, and
// two cleanups of the provider's own.
//
// A sandbox there is code beside a Durable Object, not a machine: nothing can be
// run in it, and its figures are what the agent says of itself. No description of
// the API is published, so answers are read with tolerance and never as empty
// where they are not understood.
package monotask
