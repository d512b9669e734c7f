package tui

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// Terminal is where a dashboard runs.
type Terminal struct {
	In      *os.File
	Out     *os.File
	Environ []string
	ASCII   bool              // it has no other characters
	Plain   bool              // it has no colours
	Program string            // what sbx is called
	Keys    map[string]string // by their actions: CheckKeys
	Mouse   bool              // clicks and the wheel are the dashboard's, and text is selected with Shift
	// Operator is who is at the terminal: "ops@host1".
	Operator string
	// Shell hands the terminal to a shell in a sandbox, until that ends.
	Shell func(ctx context.Context, ref sandbox.Ref) error
	// Divert gives notes and warnings of other goroutines to a function, in place of the screen, until restore.
	Divert func(to func(text string)) (restore func())
	// OnQuit is process.Process's.
	OnQuit func(restore func()) (stop func())
}

// framesPerSecond is how often the screen may change: a key is seen within 67 ms. The ticker of the
// library runs for ever, and 60 cost three times the idle time of 15; the first frame waits for the first tick.
const framesPerSecond = 15

// Without the mouse the wheel sends the arrow keys (alternate scroll): unlike reports of the mouse this leaves text to be selected.
// What the terminal did before is kept and restored.
const (
	wheelOn  = "\x1b[?1007s\x1b[?1007h"
	wheelOff = "\x1b[?1007r"
)

// Run shows the dashboard until it is quit or ctx ends; then the error is the cause of that.
func Run(ctx context.Context, source Source, now func() time.Time, t Terminal) error {
	ctx, stop := context.WithCancelCause(ctx)
	m := NewModel(ctx, source, now, t.Program, output.Cells{ASCII: t.ASCII, Plain: t.Plain})
	defer func() {
		stop(nil)
		m.running.Wait() // what was sent is on record before the process ends
	}()
	m.shell, m.operator, m.mouse = t.Shell, t.Operator, t.Mouse
	var err error
	if m.bound, err = rebound(bindings(), t.Keys); err != nil {
		return err
	}
	in, out := t.watched(func() { stop(errTerminalLost) })
	if !t.Mouse {
		_, _ = io.WriteString(out, wheelOn) // a terminal that is lost ends the loop
		defer func() { _, _ = io.WriteString(out, wheelOff) }()
	}
	if err = t.show(ctx, guarded{m, stop}, in, out); err == nil {
		err = context.Cause(ctx)
	}
	return err
}

// guarded ends the loop where the model panics. The library would end too, while its reader of the keys goes on.
type guarded struct {
	*Model

	stop context.CancelCauseFunc
}

// Update is that of the model.
func (g guarded) Update(msg tea.Msg) (model tea.Model, cmd tea.Cmd) { //nolint:ireturn // as the library asks for
	defer func() {
		if g.failed(recover()) {
			model, cmd = g, tea.Quit
		}
	}()
	_, cmd = g.Model.Update(msg)
	return g, cmd
}

// View is that of the model.
func (g guarded) View() (view tea.View) {
	defer func() { g.failed(recover()) }()
	return g.Model.View()
}

// failed ends the loop if there was a panic.
func (g guarded) failed(panicked any) bool {
	if panicked != nil {
		g.stop(fmt.Errorf("%w: %v\n%s", tea.ErrProgramPanic, panicked, debug.Stack()))
	}
	return panicked != nil
}

// show runs the loop of a model until it is quit or ctx ends.
func (t Terminal) show(ctx context.Context, m tea.Model, in io.Reader, out io.Writer, more ...tea.ProgramOption) error {
	loop := tea.NewProgram(
		m,
		append(more, tea.WithInput(in), tea.WithOutput(out), tea.WithEnvironment(t.Environ), tea.WithFPS(framesPerSecond), tea.WithoutSignalHandler())...,
	)
	defer context.AfterFunc(ctx, loop.Quit)() // tea.WithContext leaves the reader of the keys behind
	if t.Divert != nil {
		defer t.Divert(func(text string) { loop.Send(noticeMsg(text)) })()
	}
	if t.OnQuit != nil {
		defer t.OnQuit(func() {
			_ = loop.ReleaseTerminal() // a terminal that is gone needs nothing
			_, _ = io.WriteString(out, wheelOff)
		})()
	}
	_, err := loop.Run()
	return err
}

// Once reads every profile once, looks at what the records do not decide, and returns the frame without
// colours. A profile that fails is in the frame; errs has why.
func Once(ctx context.Context, source Source, now func() time.Time, width, height int, t Terminal) (lines []string, errs []error) {
	m := NewModel(ctx, source, now, t.Program, output.Cells{ASCII: t.ASCII, Plain: true})
	m.width, m.height = max(width, leastWidth), max(height, leastHeight)
	errs = m.readOnce()
	return m.Frame(), errs
}

// readOnce reads every profile, and looks at the rows on the screen. Errs is why profiles could not be read.
func (m *Model) readOnce() (errs []error) {
	answers := make(chan roundMsg, len(m.feeds))
	for _, f := range m.feeds {
		go func() { answers <- newRound(m.source.Round(m.ctx, f.profile), nil) }()
	}
	for range m.feeds {
		r := <-answers
		m.take(r, m.now())
		if r.Err != nil {
			errs = append(errs, r.Err)
		}
	}
	m.rebuild()
	tasks, err := m.source.Tasks(m.ctx)
	m.takeTasks(tasksMsg{tasks, err}, m.now())
	m.takeCleanup(cleanupMsg(m.source.Cleanup(m.ctx)), m.now())
	var open []sandbox.Sandbox
	for _, r := range m.shown() {
		if r.State == sandbox.StateRunning {
			open = append(open, *r.Sandbox)
		}
	}
	if len(open) > 0 {
		m.takeLooks(lookMsg{m.source.Look(m.ctx, open), m.now(), false}, m.now())
	}
	return errs
}
