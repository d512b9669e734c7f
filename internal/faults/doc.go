// Package faults has a table of faults for every provider: each fault affects the list, its second page,
// a read, a terminate, the reads after it, a read inside and a create. The results must not contradict
// the state of the provider's fake.
//
// It has tests only. Faults of one provider are tested beside its fake.
//
// The expectations for all answers:
//
//   - A refused key is reported as such, and the key, which the answer may repeat, is redacted.
//   - An answer "not found", "gone" or "conflict" is checked. 410 counts only where the API documents it.
//   - After "too many requests" the client waits for the given time, up to a limit, and then reports the
//     time. A server error is repeated where that has no second effect.
//   - An answer without the requested object (a web page, half a document, null, an empty object, rows
//     without id, another object) is an error of the provider, and never an empty list or a proof.
//   - A connection that breaks, hangs or drips costs a limited time. A request that may have arrived is
//     checked and not sent again; a read continues at its position.
//   - An answer without an end costs limited memory; pages without an end make the listing incomplete.
//   - A redirect to another server is not followed, and the key is not sent there.
//   - A wrong clock is measured.
//   - An end that was accepted and does not happen, or was refused and is forgotten, is not verified.
//   - No verb exceeds its limit, and no error contains a secret.
package faults
