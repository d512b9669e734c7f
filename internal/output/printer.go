package output

import (
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"sbx/internal/process"
)

// Options are what the global flags say about output.
type Options struct {
	Format  Format
	Columns []string // of --columns; empty = by level
	NoColor bool
	Quiet   bool // no notes and no progress; errors stay
	Verbose int  // from 1 on errors show their chain

	// Awaited names the providers that have not answered yet, and since when; nil = nobody knows.
	Awaited func() (names []string, since time.Time)

	Secrets []string // never shown in an error or a note
}

// Printer knows where the output of one command goes and in which format.
// Documents are written by one goroutine; notes and progress by any.
type Printer struct {
	Options

	name     string // what the program was called by
	now      func() time.Time
	screen   *terminal
	out, err screen
	board    *progressBoard
	diverted atomic.Pointer[func(text string)]
}

// New makes the printer of one command.
func New(p process.Process, o Options) *Printer {
	now := p.Now
	if now == nil {
		now = time.Now
	}
	printer := &Printer{
		Options: o,
		name:    Escape(p.Name()),
		now:     now,
		screen:  &terminal{out: p.Stdout, err: p.Stderr, shared: p.Stdout.TTY},
		out:     stdoutScreen(p, o),
		err:     screenOf(p, p.Stderr, o),
	}
	printer.board = &progressBoard{
		out: printer.screen, at: printer.err, name: printer.name, on: !o.Quiet, piped: !printer.err.tty,
		awaited: o.Awaited, plain: !printer.err.tty || printer.err.dumb || printer.err.accessible || p.Getenv("CI") != "",
	}
	return printer
}

// Stdout is the data stream for bytes that go out as they are (`logs --raw`,
// `exec`). Writing returns ErrClosed once the reader has gone.
func (p *Printer) Stdout() io.Writer { return p.screen }

// Coloured reports whether stdout shows colours: the terminal has some, and nothing turns them off.
func (p *Printer) Coloured() bool { return p.out.colour }

// Line writes one line of data, escaped except for tabs.
func (p *Printer) Line(text string) error {
	_, err := p.screen.Write([]byte(p.out.toASCII(EscapeLine(text)) + "\n"))
	return err
}

// LineTone is Line in the colour of a tone, for many lines: they may wait for each other until Broken.
func (p *Printer) LineTone(text string, tone Tone) error {
	return p.screen.gatherOutput([]byte(p.out.paint(p.out.toASCII(EscapeLine(text)), tone) + "\n"))
}

// Broken is the failure after which nothing can be written to stdout any more: ErrClosed, a full disk;
// nil = none. A verb that repeats ends with it.
func (p *Printer) Broken() error { return p.screen.flushOutput() }

// Pass is one line of a program that runs for the operator, escaped except for tabs: it
// goes where the program has put it, unless stdout is for a document.
func (p *Printer) Pass(text string, toStderr bool) {
	if toStderr || !p.writesAside() {
		p.screen.writeErr(p.err.toASCII(EscapeLine(text)) + "\n")
		return
	}
	_ = p.Line(text) // a closed stdout needs no further output
}

// writesAside says that stdout belongs to programs and what is said of them goes to stderr,
// for the verbs that have an Aside: in the formats for people.
func (p *Printer) writesAside() bool { return p.Format.Human() && len(p.Columns) == 0 }

// Note prints one line for the operator on stderr; not with Quiet.
func (p *Printer) Note(text string) {
	if !p.Quiet {
		p.tell("", text)
	}
}

// Aside prints a page for people on stderr, also with Quiet: it belongs to a question.
func (p *Printer) Aside(fill func(*Sheet)) {
	sheet := &Sheet{}
	fill(sheet)
	text, _ := sheet.renderPage(view{screen: p.err, now: p.now()}) // a page of values always renders
	p.screen.writeErr(string(text))
}

// Warn is Note for what the operator has to know: also with Quiet.
func (p *Printer) Warn(text string) { p.tell("warning: ", text) }

// tell writes one line of stderr; the lines of joined errors stand behind each other.
func (p *Printer) tell(label, text string) {
	text = joinLines(text)
	if to := p.diverted.Load(); to != nil {
		(*to)(label + Redact(text, p.Secrets))
	}
	p.screen.writeErr(p.stderrLine(label, text))
}

// Divert gives notes and warnings to a program that draws on the terminal, until restore is called: to is called
// by any goroutine. Nothing else is written to a stderr that is a terminal meanwhile, neither progress nor what -v
// shows; one that is redirected has everything as before.
func (p *Printer) Divert(to func(text string)) (restore func()) {
	mute := func(muted bool) {
		p.board.change(func(b *progressBoard) { b.muted = muted })
		p.screen.setSilent(muted)
	}
	p.diverted.Store(&to)
	mute(p.err.tty)
	return func() {
		mute(false)
		p.diverted.Store(nil)
	}
}

// Prompt asks the terminal something. No progress is shown until answered is called. Entered = the
// answer ended with enter, so that the cursor is at the start of a line.
func (p *Printer) Prompt(question string) (answered func(entered bool)) {
	text := strings.TrimRight(question, " ")
	p.screen.writeErr(strings.Join(wrapMessage(text, p.err.width), "\n") + question[len(text):])
	return p.screen.startLine
}

// Trace is one line of what -v shows.
func (p *Printer) Trace(text string) { p.screen.writeErr(p.stderrLine("", text)) }

func (p *Printer) stderrLine(label, text string) string {
	line := p.name + ": " + label + p.err.escape(Redact(text, p.Secrets))
	return strings.Join(wrapMessage(line, p.err.width), "\n") + "\n"
}

// leastMessage is the width below which a message is left to the terminal.
const leastMessage = 20

// messageHang precedes what is wrapped of a message.
const messageHang = "  "

// wrapMessage wraps a line of stderr at its words; one of less than leastMessage cells does not. A command in backquotes stays in one piece
// where a line has the room: it is copied from there.
func wrapMessage(line string, width int) []string {
	const joint = "\ue000" // in place of a blank; texts are escaped, so that it is never one of theirs
	if width < leastMessage {
		return []string{line}
	}
	quoted := regexp.MustCompile("`[^`]*`").ReplaceAllStringFunc(line, func(command string) string {
		if len(messageHang)+cellWidth(command) > width {
			return command
		}
		return strings.ReplaceAll(command, " ", joint)
	})
	lines := WrapText(quoted, width, messageHang)
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], joint, " ")
	}
	return lines
}

// writeStdout sends finished bytes to stdout; no bytes, no call.
func (p *Printer) writeStdout(b []byte, err error) error {
	if err != nil || len(b) == 0 {
		return err
	}
	_, err = p.screen.Write(b)
	return err
}

// concludeList reports errs and gives the error that decides the exit code: verdict,
// unless stdout failed. A gone reader ends quietly, but never hides a failure.
func (p *Printer) concludeList(errs []error, verdict, written error) error {
	gone := errors.Is(written, ErrClosed)
	if written != nil && !gone {
		p.printErrors(slices.Concat(errs, []error{written}))
		return reportedError(written)
	}
	if gone || !p.Format.Structured() {
		p.printErrors(errs)
	}
	if gone && verdict == nil {
		return ErrClosed
	}
	return reportedError(verdict)
}

// BeginFrame holds everything that is written until ShowFrame or DropFrame, but the progress: one
// look of a --watch replaces the one before as a whole.
func (p *Printer) BeginFrame() { p.screen.holdFrame() }

// ShowFrame writes what was held. On a terminal it replaces the screen and leaves what was scrolled
// away; elsewhere, and in every format but the tables, it follows what came before.
func (p *Printer) ShowFrame() error {
	clearing := ""
	if p.out.tty && !p.out.dumb && !p.out.accessible && p.Format.Human() {
		clearing = "\x1b[H\x1b[2J"
	}
	return p.screen.showFrame(clearing)
}

// DropFrame forgets what was held.
func (p *Printer) DropFrame() { p.screen.dropFrame() }

// Now is the time of this process.
func (p *Printer) Now() time.Time { return p.now() }

// Redact hides every secret in a text that is kept.
func (p *Printer) Redact(text string) string { return Redact(text, p.Secrets) }
