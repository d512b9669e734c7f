// Package supervisor is the two processes that stand around a local sandbox's
// program: the supervisor, which owns limits, time, output and the record, and
// the stub, which is PID 1 of the sandbox and starts the program as PID 2.
//
// Both are this same binary under a hidden first argument. They do no flag,
// configuration or library work and keep within 4 MiB of anonymous memory. The
// supervisor's death takes the stub with it, the stub's death the program:
// nothing runs unsupervised.
//
// What an exit means is not judged here; the record keeps facts.
package supervisor
