package output

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sbx/internal/sandbox"
)

// Times of the progress line.
const (
	progressAfter = time.Second            // how long a wait may be silent
	progressEvery = 200 * time.Millisecond // between two changes of the line
	plainEvery    = 10 * time.Second       // between two lines where none can be rewritten
	pipedAfter    = 4 * time.Second        // how much longer a verb may be silent where nobody watches a terminal
	calmAfter     = 2 * time.Second        // without a wait, after which the next one is a new silence
)

// Progress is one wait of the command. Its methods may be called at the same time and from
// anywhere.
type Progress struct {
	board *progressBoard
	label string
	text  string
	began time.Time
}

// progressBoard shows on stderr what the command waits for: the newest wait that has taken a
// second, how far it is, the providers whose answer is awaited, and the time. On a terminal it is
// one line that rewrites itself; on one that cannot do that (TERM=dumb), for a screen reader and in
// CI a whole line every ten seconds; so it is without a terminal, from 5 s of waiting on. With Quiet
// there is none.
type progressBoard struct {
	out     *terminal
	at      screen
	name    string
	on      bool
	plain   bool
	piped   bool // plain, and without a terminal
	awaited func() (providers []string, since time.Time)

	mu    sync.Mutex
	open  []*Progress
	waits int         // calls of ShowWaits that have not ended
	muted bool        // another program draws on the terminal
	timer *time.Timer // nil = nothing is open
	last  []string    // providers awaited most recently: between two requests none is
	wrote time.Time   // of the last plain line
	since time.Time   // from when on there was something to say, without a pause; zero = there is nothing
	said  time.Time   // when there was something to say last
}

// Progress begins a wait. Done must be called.
func (p *Printer) Progress(label string) *Progress {
	g := &Progress{board: p.board, label: label, began: time.Now()}
	p.board.change(func(b *progressBoard) { b.open = append(b.open, g) })
	return g
}

// ShowWaits shows the providers whose answer takes longer than a second, also where nobody
// has begun a Progress, until done is called.
func (p *Printer) ShowWaits() (done func()) {
	p.board.change(func(b *progressBoard) { b.waits++ })
	return func() { p.board.change(func(b *progressBoard) { b.waits-- }) }
}

// Update says how far the work is, in plain words: "3 of 5".
func (g *Progress) Update(text string) {
	g.board.mu.Lock()
	defer g.board.mu.Unlock()
	g.text = text
}

// Done ends the wait. Further calls do nothing.
func (g *Progress) Done() {
	g.board.change(func(b *progressBoard) {
		b.open = slices.DeleteFunc(b.open, func(o *Progress) bool { return o == g })
	})
}

// change changes what is open. The line is rewritten from then on, and removed with the last wait.
func (b *progressBoard) change(do func(*progressBoard)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do(b)
	switch idle := b.muted || len(b.open) == 0 && b.waits == 0; {
	case !b.on:
	case idle && b.timer != nil:
		b.timer.Stop()
		b.timer = nil
		b.draw("")
	case !idle && b.timer == nil:
		b.timer = time.AfterFunc(progressEvery, b.refresh)
	}
}

func (b *progressBoard) refresh() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer == nil { // it ended meanwhile
		return
	}
	b.draw(b.currentLine())
	b.timer = time.AfterFunc(progressEvery, b.refresh)
}

// draw shows a line, "" for none. The lock is held.
func (b *progressBoard) draw(line string) {
	if !b.plain {
		b.out.setProgressLine(line)
		return
	}
	now := time.Now()
	switch {
	case line == "" && now.Sub(b.said) > calmAfter:
		b.since = time.Time{}
	case line == "":
	default:
		if b.said = now; b.since.IsZero() {
			b.since = now
		}
		if (!b.piped || now.Sub(b.since) >= pipedAfter) && (b.wrote.IsZero() || now.Sub(b.wrote) >= plainEvery) {
			b.wrote = now
			b.out.writeProgress(b.name + ": " + line + "\n")
		}
	}
}

// currentLine is what is waited for now; "" = nothing for long enough. The lock is held.
func (b *progressBoard) currentLine() string {
	var names []string
	var since time.Time
	if b.awaited != nil {
		names, since = b.awaited()
	}
	if len(names) > 0 {
		b.last = names
	}
	for _, g := range slices.Backward(b.open) {
		if time.Since(g.began) >= progressAfter {
			unnamed := slices.DeleteFunc(slices.Clone(b.last), func(name string) bool { return strings.Contains(g.text, name+": ") })
			return b.fit(g.label, g.text, waitingFor(unnamed), elapsed(g.began))
		}
	}
	if len(names) > 0 && b.waits > 0 && time.Since(since) >= progressAfter {
		return b.fit("", "", waitingFor(names), elapsed(since))
	}
	return ""
}

func elapsed(since time.Time) string {
	return sandbox.FormatDuration(time.Since(since).Truncate(time.Second))
}

// mostNamed is how many awaited providers are named.
const mostNamed = 3

func waitingFor(names []string) string {
	switch {
	case len(names) == 0:
		return ""
	case len(names) > mostNamed:
		return "waiting for " + strconv.Itoa(len(names)) + " providers"
	}
	return "waiting for " + strings.Join(names, ", ")
}

// fit gives the longest form of a line that fits one row, with a cell to spare for the cursor.
func (b *progressBoard) fit(label, text, waiting, took string) string {
	if label != "" && text != "" {
		label += ": "
	}
	if b.at.width == 1 {
		return ""
	}
	var line string
	for _, parts := range [][]string{{label + text, waiting, took}, {text, waiting, took}, {text, took}, {took}} {
		line = b.at.escape(strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; "))
		if b.plain || b.at.width == 0 || cellWidth(line) < b.at.width {
			return line
		}
	}
	return b.at.cut(line, b.at.width-1)
}
