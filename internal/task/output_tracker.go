package task

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/sandbox"
)

// outputTracker records the output of an attempt while it is followed.
type outputTracker struct {
	observer Observer
	readAt   time.Time // the store's clock when following began
	began    time.Time // this process's clock then

	mu         sync.Mutex
	lastOutput time.Time        // this process's clock at the last output
	lastAnswer time.Time        // this process's clock when the sandbox last answered; zero = it is not asked
	outputLost bool             // the output cannot be read
	written    time.Time        // the provider's clock at the last line
	repeated   int              // lines with exactly that time
	skip       int              // of these lines, how many a resumed stream repeats
	open       map[string]int64 // by stream, the bytes of the line that has not ended
	messages   int
	agentSeen  bool // some lines were events of an agent
	session    string
	extended   bool
	tail       []string // the last lines
}

// What is kept of an output: the lines that history keeps, each of one screen line or two.
const (
	tailLines = 20
	tailBytes = 300
)

// keepLine adds a line to the tail. The lock is held.
func (p *outputTracker) keepLine(text string) {
	if len(text) > tailBytes {
		text = strings.ToValidUTF8(text[:tailBytes], "") + "..."
	}
	p.tail = append(p.tail, strings.Clone(text))
	p.tail = p.tail[max(0, len(p.tail)-tailLines):]
}

func newOutputTracker(readAt time.Time, ear Observer) *outputTracker {
	now := time.Now()
	return &outputTracker{observer: ear, readAt: readAt, began: now, lastOutput: now, open: map[string]int64{}}
}

// resumeTime is the time from which a cut stream is resumed.
func (p *outputTracker) resumeTime() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skip = p.repeated
	return p.written
}

// addLine takes the next line of a stream. A line that has not ended counts as output where it has
// grown, which a resumed stream reports again, and is shown when it ends.
func (p *outputTracker) addLine(l sandbox.LogLine) {
	if l.OpenBytes > 0 {
		p.noteGrowth(l.Stream, l.OpenBytes)
		return
	}
	if l.Gap != nil { // not output of the program
		if p.observer != nil {
			p.observer.Output(l)
		}
		return
	}
	p.mu.Lock()
	if p.skip > 0 && !l.At.After(p.written) {
		p.skip--
		p.mu.Unlock()
		return
	}
	if l.At.Equal(p.written) {
		p.repeated++
	} else {
		p.written, p.repeated = l.At, 1
	}
	p.lastOutput = time.Now()
	p.keepLine(l.Text)
	delete(p.open, l.Stream)
	kind, session := parseAgentLine(l.Text)
	if kind == agentMessage {
		p.messages++
	}
	p.agentSeen = p.agentSeen || kind != plainLine
	p.session = cmp.Or(session, p.session)
	p.mu.Unlock()
	if p.observer != nil {
		p.observer.Output(l)
	}
}

func (p *outputTracker) noteGrowth(stream string, size int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[stream] != size {
		p.open[stream], p.lastOutput = size, time.Now()
	}
}

// lastWritten is the provider's clock at the last line that was shown.
func (p *outputTracker) lastWritten() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written
}

// isAsked reports whether the sandbox is asked for its program; else its output comes with its exit over one stream.
func (p *outputTracker) isAsked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.lastAnswer.IsZero()
}

// noteOutput records that there may be output now that was not shown.
func (p *outputTracker) noteOutput() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastOutput = time.Now()
}

// silentTime is how long there was no output, as far as it could be read: while the sandbox does not answer, nothing
// is known of its program.
func (p *outputTracker) silentTime() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.outputLost:
		return 0
	case p.lastAnswer.IsZero():
		return time.Since(p.lastOutput)
	}
	return max(0, p.lastAnswer.Sub(p.lastOutput))
}

// noteAnswer records whether the sandbox has answered a query.
func (p *outputTracker) noteAnswer(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil || p.lastAnswer.IsZero() {
		p.lastAnswer = time.Now()
	}
}

// unheardTime is the time since the sandbox has last answered.
func (p *outputTracker) unheardTime() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.lastAnswer)
}

// loseOutput records that the output cannot be read any more, so that silence proves nothing.
func (p *outputTracker) loseOutput() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outputLost = true
}

func (p *outputTracker) isOutputLost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.outputLost
}

// markExtended records that the program was silent for longer than its limit and yet
// active.
func (p *outputTracker) markExtended() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.extended = true
}

// endReport is what the output shows at the end of the attempt.
func (p *outputTracker) endReport(exit sandbox.Exit, u sandbox.Usage) Ended {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := Ended{Exit: exit, Usage: u, Session: p.session, Extended: p.extended, Tail: slices.Clone(p.tail)}
	if p.lastOutput.After(p.began) {
		e.OutputAt = p.readAt.Add(p.lastOutput.Sub(p.began))
	}
	if p.agentSeen {
		n := p.messages
		e.Messages = &n
	}
	return e
}
