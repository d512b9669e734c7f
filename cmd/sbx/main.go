// Command sbx sees, diagnoses, ends and launches AI-agent sandboxes.
package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"sbx/internal/cli"
	"sbx/internal/process"
)

func main() {
	// A reader that leaves (`| head`) shall be an error of the write, not the
	// end of the process. Caught, not ignored: children inherit what is ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(cli.Main(process.Process{
		Args: os.Args, Environ: os.Environ(), UID: os.Getuid(), PID: os.Getpid(), Now: time.Now,
		Stdin:  process.Stream{Reader: os.Stdin, File: os.Stdin},
		Stdout: process.Stream{Writer: os.Stdout, File: os.Stdout},
		Stderr: process.Stream{Writer: os.Stderr, File: os.Stderr},
		Signals: func() (<-chan os.Signal, func()) {
			c := make(chan os.Signal, 2)
			signal.Notify(c, os.Interrupt, syscall.SIGTERM)
			if !signal.Ignored(syscall.SIGHUP) { // nohup means what it says
				signal.Notify(c, syscall.SIGHUP)
			}
			return c, func() { signal.Stop(c) }
		},
		EndBy:  endBy,
		OnQuit: onQuit,
	}))
}

// onQuit calls restore before SIGQUIT ends this process as it always does.
func onQuit(restore func()) (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGQUIT)
	go func() {
		if _, quit := <-c; quit {
			restore()
			endBy(syscall.SIGQUIT)
		}
	}()
	return func() {
		signal.Stop(c)
		close(c)
	}
}

// endBy ends this process by a signal, where the system can and the signal is not ignored; it waits a moment, since
// another thread may be the one that receives it.
func endBy(s os.Signal) {
	signal.Reset(s)
	if self, err := os.FindProcess(os.Getpid()); err == nil && self.Signal(s) == nil {
		time.Sleep(100 * time.Millisecond)
	}
}
