// Package hostfile reads and replaces files that an operator names and says whether a
// path of this machine is under the control of this user alone.
//
// A file is read with a bound and only as long as its caller waits: a pipe that
// nobody writes to, a device without an end and a network file system that does
// not answer never hold a command. What the files mean, and what follows from a
// path that others control, is the business of the rooms that ask.
package hostfile
