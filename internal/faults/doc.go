// Package faults holds a table of faults against every provider: each fault stands in
// front of the list, its second page, a read, a request that ends, the looks after it,
// a look inside and a create. What was told must not contradict what the fake of the
// provider knows itself.
//
// There is nothing here but its tests. No fault of one provider alone enters this room:
// those stand beside its fake.
//
// What is expected of everything that can come back:
//
//   - An answer that refuses the key is said to be that, and the key, which the answer
//     may repeat, is masked.
//   - An answer that something is not there, or is gone, or in conflict is doubted. 410
//     counts only where the API documents it.
//   - A request to slow down is waited for as long as it says, up to a bound, and then
//     told with the time. A server's own error is repeated where nothing can happen
//     twice.
//   - An answer that holds nothing of what was asked for, a web page, half a document,
//     null, an empty object, rows without id, an answer about another object, is a
//     trouble of the provider: never "nothing there", never a proof.
//   - A connection that breaks, hangs or drips costs a bounded time. What may have
//     arrived is looked up, and not sent again; a read goes on from its place.
//   - An answer without end costs bounded memory; pages without end are said, and the
//     listing is incomplete.
//   - A redirect to another server is not followed, and the key is not sent there.
//   - A clock that is off is measured.
//   - An end that was accepted and does not happen, or was refused and is forgotten, is
//     not verified.
//   - No verb outlives its limit, and no error quotes a secret.
package faults
