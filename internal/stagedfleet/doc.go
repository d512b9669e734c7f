// Package stagedfleet stages an incident on fakes of three providers' APIs: 300 sandboxes,
// of which 26 are stuck and can be proved to be, and 10 look stuck and cannot be judged.
//
// It serves tests, measurements and demonstrations: the program cmd/staged-incident puts
// the same fleet behind loopback for any command. Every sandbox of one seed is the same in
// each run, apart from the moment at which the stage was set.
package stagedfleet
