package tui

import (
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/sandbox"
)

// shellMsg says that the shell in a sandbox has ended.
type shellMsg struct {
	ref string
	err error
}

// shellCommand is tea.ExecCommand for what takes the terminal itself.
type shellCommand struct{ run func() error }

// Run is tea.ExecCommand's.
func (s shellCommand) Run() error { return s.run() }

// SetStdin, SetStdout and SetStderr are of tea.ExecCommand.
func (shellCommand) SetStdin(io.Reader)  {}
func (shellCommand) SetStdout(io.Writer) {}
func (shellCommand) SetStderr(io.Writer) {}

// openShell hands the terminal to a shell in the sandbox under the cursor.
func (m *Model) openShell() tea.Cmd {
	r, ok := m.current()
	switch {
	case !ok:
		return nil
	case r.State != sandbox.StateRunning:
		m.notice = "no shell: " + r.ref() + " is " + string(r.State)
		return nil
	case m.shell == nil:
		m.notice = "no shell: the terminal cannot be handed over"
		return nil
	}
	ref := r.Ref()
	run := func() error {
		select { // the library stops its ticker in another goroutine: one that it stops after the return stays stopped (bubbletea#1778)
		case <-time.After(2 * time.Second / framesPerSecond):
		case <-m.ctx.Done():
		}
		return m.shell(m.ctx, ref)
	}
	return tea.Exec(shellCommand{run}, func(err error) tea.Msg { return shellMsg{ref.String(), err} })
}

// endShell says what went wrong with a shell.
func (m *Model) endShell(msg shellMsg) {
	if msg.err != nil {
		m.notice = "shell in " + msg.ref + ": " + strings.TrimPrefix(msg.err.Error(), m.program+": ")
	}
}
