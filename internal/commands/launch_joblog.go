package commands

import (
	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/task"
	"sbx/internal/views"
)

// joblog is the file of --joblog, with a line for each attempt.
type joblog struct {
	path string // "" = there is none
	warn func(text string)
}

// open refuses a file that cannot be written, before hours of work are.
func (l *joblog) open() error {
	if l.path == "" {
		return nil
	}
	f, err := hostfile.Append(l.path, modeJoblog)
	if err != nil {
		return fault.Usage("--joblog: %w", err).WithHint("name a file that can be written")
	}
	return f.Close()
}

// modeJoblog lets others read: it is a log.
const modeJoblog = 0o644

// add adds a line for each attempt of a task. Its Seq is the task's place in a file;
// at none it is the attempt's number. That it cannot be written changes nothing of
// what the task came to.
func (l *joblog) add(t task.Task, seq int) {
	if l.path == "" {
		return
	}
	if err := l.addLines(t, seq); err != nil {
		l.warn("--joblog: the lines of task " + t.ID + " could not be added: " + err.Error())
	}
}

func (l *joblog) addLines(t task.Task, seq int) error {
	f, err := hostfile.Append(l.path, modeJoblog)
	if err != nil {
		return err
	}
	text := views.JoblogLines(t, seq)
	if info, err := f.Stat(); err == nil && info.Size() == 0 {
		text = views.JoblogHead + text
	}
	err = f.Add(text) // one write: lines of several processes do not mix
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
