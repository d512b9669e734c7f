package drill

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"time"
)

// ProgramArg is the hidden first argument with which the binary plays a staged program.
const ProgramArg = "__sbx-drill-program"

// Program runs the staged program that the arguments name and returns its exit status;
// false when they name none.
func Program(args []string, out io.Writer) (status int, done bool) {
	if len(args) != 3 || args[1] != ProgramArg {
		return 0, false
	}
	play, ok := stagedPrograms()[args[2]]
	if !ok {
		return 2, true
	}
	return play(out), true
}

func stagedPrograms() map[string]func(io.Writer) int {
	return map[string]func(io.Writer) int{
		"busy": busyProgram, "hung": hungProgram, "leak": leakProgram, "silent": silentProgram, "steady": steadyProgram, "stage": stageProgram,
	}
}

// busyProgram is an agent in an endless loop: a full core, many operations, no error, no
// end. It is locked to one thread: with a second processor Go moves the loop between
// threads, and each of them looks idle on a busy machine.
func busyProgram(out io.Writer) int {
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

// hungProgram waits for a server that accepts the connection and never answers. The
// listener's backlog completes the handshake, so the connection is real.
func hungProgram(out io.Writer) int {
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

// leakProgram allocates 4 MiB every 10 ms until it is stopped.
func leakProgram(out io.Writer) int {
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

// silentProgram prints one line and then waits.
func silentProgram(out io.Writer) int {
	fmt.Fprintln(out, "agent started")
	<-time.After(time.Hour)
	return 0
}

// steadyProgram works a little and reports it, ten times a second.
func steadyProgram(out io.Writer) int {
	for n := 1; ; n++ {
		fmt.Fprintf(out, "step %d done\n", n)
		<-time.After(100 * time.Millisecond)
	}
}

// stageProgram is a stage of a pipeline that does its work and ends.
func stageProgram(out io.Writer) int {
	for n := 1; n <= 3; n++ {
		fmt.Fprintf(out, "artifact %d written\n", n)
		<-time.After(50 * time.Millisecond)
	}
	fmt.Fprintln(out, "stage completed")
	return 0
}
