// Package hostfile reads and replaces files that an operator names, and says whether a path of
// this machine is under the control of this user alone.
//
// Reads are bounded and end with their context: a pipe without a writer, an endless device and
// a hanging network file system never block a command.
package hostfile
