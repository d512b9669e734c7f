//go:build unix

package local_test

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// programArg makes the test binary a program for a sandbox.
const programArg = "__test-program"

// program is what runs inside sandboxes when a test needs more than a shell.
func program(args []string) int {
	switch args[0] {
	case "hog":
		return hog()
	case "count":
		return count()
	case "blocked":
		return blocked()
	}
	fmt.Fprintln(os.Stderr, "unknown test program", args[0])
	return 2
}

// count says so each time that it is asked to end, and goes on.
func count() int {
	asked := make(chan os.Signal, 16)
	signal.Notify(asked, syscall.SIGTERM)
	fmt.Println("up")
	for range asked {
		fmt.Println("asked")
	}
	return 0
}

// hog takes memory until it is stopped.
func hog() int {
	var held [][]byte
	for {
		block := make([]byte, 4<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		held = append(held, block)
		if len(held) > 1024 {
			return 9
		}
		<-time.After(time.Millisecond)
	}
}
