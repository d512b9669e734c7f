// Package wiretest is what the strict wire fakes of the providers are made of:
// an HTTP server that knows every route it serves and fails the test at any
// other path, query name, body field or missing header; faults on demand; the
// bad days that every wire room must survive; real processes for commands; and
// the official API descriptions as a contract for both sides.
//
// A fake answers in-process over net.Pipe (Server.Dial, which also works in
// virtual time) or on loopback (Server.Listen). No provider's own paths or
// states enter this room: they stand in the room beside each client.
package wiretest
