// Package guest is what sbx runs inside a sandbox where the provider's API
// keeps too little: POSIX shell texts that start a program in its own process
// group with its output in a capped file and its exit code in a file written
// last, that read those files, that measure, and that kill a whole group; and
// the parsers of what they print.
//
// It makes and reads text; how a text gets into a sandbox is the wire room's
// business, which hands in a Shell.
package guest
