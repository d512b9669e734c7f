//go:build !unix

package supervisor

// Run cannot do its work on this system; the client refuses before it gets here.
func Run() int { return 1 }

// RunStub cannot do its work on this system.
func RunStub() int { return 1 }
