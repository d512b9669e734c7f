package process

import (
	"os"
	"time"
)

// oneDecision is how long after its acknowledgement an interrupt goes on being the same one: timeout(1) signals the
// command and then its group, a task runner passes on the Ctrl-C which the terminal has delivered already. A person who
// has read "interrupt again" needs longer than this.
const oneDecision = time.Second

// DropRepeats drops the signals that repeat the interrupt which has just been acknowledged on the screen. It returns
// false where end was closed meanwhile: there is nothing left to interrupt.
func DropRepeats(signals <-chan os.Signal, end <-chan struct{}) (goesOn bool) {
	over := time.NewTimer(oneDecision)
	defer over.Stop()
	for {
		select {
		case <-signals:
		case <-over.C:
			return true
		case <-end:
			return false
		}
	}
}
