package wiretest

// Machine runs the commands that a fake is asked to run, as real processes of
// this machine: in a folder of their own that is HOME and the working
// directory, each in its own process group. All are killed with the test.
type Machine struct{}
