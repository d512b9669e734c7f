package output

import (
	"errors"
	"io"
	"slices"
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

	Secrets []string // never shown in an error or a note
}

// Printer knows where the output of one command goes and in which format.
// Documents are written by one goroutine; notes and progress by any.
type Printer struct {
	Options

	name     string // what the program was called by
	now      func() time.Time
	screen   *terminal
	tty      bool
	outWidth int // of a terminal on stdout; 0 = unlimited
	errWidth int
	colour   bool
	progress bool
}

// New makes the printer of one command.
func New(p process.Process, o Options) *Printer {
	now := p.Now
	if now == nil {
		now = time.Now
	}
	printer := &Printer{
		Options:  o,
		name:     Escape(p.Name()),
		now:      now,
		screen:   &terminal{out: p.Stdout, err: p.Stderr, shared: p.Stdout.TTY},
		tty:      p.Stdout.TTY,
		errWidth: p.Stderr.Width,
		colour:   wantsColor(p, o),
		progress: p.Stderr.TTY && !o.Quiet && p.Getenv("TERM") != "dumb",
	}
	if p.Stdout.TTY {
		printer.outWidth = p.Stdout.Width
	}
	return printer
}

// Stdout is the data stream for bytes that go out as they are (`logs --raw`,
// `exec`). Writing returns ErrClosed once the reader has gone.
func (p *Printer) Stdout() io.Writer { return p.screen }

// Line writes one line of data, escaped except for tabs.
func (p *Printer) Line(text string) error {
	_, err := p.screen.Write([]byte(EscapeLine(text) + "\n"))
	return err
}

// Pass is one line of a program that runs for the operator, escaped except for tabs: it
// goes where the program has put it, unless stdout is for a document.
func (p *Printer) Pass(text string, toStderr bool) {
	if toStderr || !p.writesAside() {
		p.screen.writeErr(EscapeLine(text) + "\n")
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
		p.screen.writeErr(p.stderrLine("", text))
	}
}

// Warn is Note for what the operator has to know: also with Quiet.
func (p *Printer) Warn(text string) { p.screen.writeErr(p.stderrLine("warning: ", text)) }

// Trace is one line of what -v shows.
func (p *Printer) Trace(text string) { p.screen.writeErr(p.stderrLine("", text)) }

func (p *Printer) stderrLine(label, text string) string {
	return p.name + ": " + label + Escape(Redact(text, p.Secrets)) + "\n"
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

// ClearScreen makes room for the next look of a --watch and leaves what was
// scrolled away. Off a terminal, and in every format but the tables, it does
// nothing. What is written next reports a reader that has gone.
func (p *Printer) ClearScreen() {
	if p.tty && p.Format.Human() {
		_, _ = p.screen.Write([]byte("\x1b[H\x1b[2J"))
	}
}

// Redact hides every secret in a text that is kept.
func (p *Printer) Redact(text string) string { return Redact(text, p.Secrets) }
