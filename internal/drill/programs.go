package drill

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"time"
)

// ProgramArg is the hidden first argument under which the binary plays one of
// the staged sandboxes.
const ProgramArg = "__sbx-drill-program"

// Program plays the sandbox that the arguments name and returns its exit
// status; false when the arguments ask for something else.
func Program(args []string, out io.Writer) (status int, done bool) {
	if len(args) != 3 || args[1] != ProgramArg {
		return 0, false
	}
	play, ok := programs()[args[2]]
	if !ok {
		return 2, true
	}
	return play(out), true
}

func programs() map[string]func(io.Writer) int {
	return map[string]func(io.Writer) int{
		"busy": busy, "hung": hung, "leak": leak, "silent": silent, "steady": steady,
	}
}

// busy is an agent in an endless loop: all of a core, many operations, no error,
// never done. It keeps to one thread, and Go to that thread: with a second
// processor Go moves the loop from thread to thread, and each of them looks at
// rest on a machine that has other work too.
func busy(out io.Writer) int {
	fmt.Fprintln(out, "planning step 1")
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return 1
	}
	runtime.GOMAXPROCS(1)
	runtime.LockOSThread()
	step := []byte("x")
	for {
		_, _ = null.Write(step)
	}
}

// hung waits for the answer of a server that took the connection and never
// speaks. The listener's backlog completes the handshake, so the connection is
// as real as any.
func hung(out io.Writer) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // lives as long as the process
	if err != nil {
		return 1
	}
	address := listener.Addr().String()
	fmt.Fprintf(out, "calling POST http://%s/v1/messages\n", address)
	conn, err := net.Dial("tcp", address) //nolint:noctx // lives as long as the process
	if err != nil {
		return 1
	}
	fmt.Fprint(conn, "POST /v1/messages HTTP/1.1\r\nHost: api\r\nContent-Length: 0\r\n\r\n")
	return waitForAnswer(conn)
}

// leak takes 4 MiB every 10 ms until something stops it.
func leak(out io.Writer) int {
	var held [][]byte
	for {
		block := make([]byte, 4<<20)
		for i := 0; i < len(block); i += os.Getpagesize() {
			block[i] = 1
		}
		held = append(held, block)
		fmt.Fprintf(out, "context holds %d MiB\n", 4*len(held))
		<-time.After(10 * time.Millisecond)
	}
}

// silent says one thing and then waits on nothing in particular.
func silent(out io.Writer) int {
	fmt.Fprintln(out, "agent started")
	<-time.After(time.Hour)
	return 0
}

// steady works a little and says so, ten times a second.
func steady(out io.Writer) int {
	for n := 1; ; n++ {
		fmt.Fprintf(out, "step %d done\n", n)
		<-time.After(100 * time.Millisecond)
	}
}
