//go:build !unix

package supervisor

// Run is not supported on this system; the client refuses before.
func Run() int { return 1 }

// RunStub is not supported on this system.
func RunStub() int { return 1 }
