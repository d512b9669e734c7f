// Package supervisor is the two processes around a local sandbox's program: the supervisor,
// which enforces limits and time, copies the output and writes the record, and the stub, which
// is PID 1 of the sandbox and starts the program as its first child.
//
// Both are this same binary with a hidden first argument. They parse no flags or
// configuration and keep within 4 MiB of anonymous memory. The supervisor's death ends the
// stub, the stub's death ends the program: nothing runs unsupervised.
//
// The package records facts; what an exit means is judged elsewhere.
package supervisor
