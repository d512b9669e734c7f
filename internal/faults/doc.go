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
//
// The worlds of lies (lies_*_test.go) run the operations, each in a new process, against each wire fake in
// virtual time, while one source lies: the record by id, the list, the host, what is read inside, the answer
// to a request, or the clock. The lie is about one sandbox or all; once, some times or for ever; the other
// sources say the truth, without which no program could be right. Nothing ends but what was named or what the
// rule selects by the truth, is ours and is not kept; `verified`, `already_gone` and `wait` are said of what
// does not run; what the rule selects has ended, or is named, two runs after the lying has stopped. One lie
// cannot be found out: where the bodies of every answer are shifted in time and the `Date` is right, age is
// what the API says. SBX_SEED plays a failing seed again.
package faults
