package commands

import (
	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/task"
	"sbx/internal/views"
)

// openJoblog refuses a file that cannot be written, before hours of work are.
func (l *launching) openJoblog() error {
	if l.o.joblog == "" {
		return nil
	}
	f, err := l.joblogFile()
	if err != nil {
		return fault.Usage("--joblog: %w", err).WithHint("name a file that can be written")
	}
	return f.Close()
}

// modeJoblog lets others read: it is a log.
const modeJoblog = 0o644

func (l *launching) joblogFile() (hostfile.Appended, error) {
	return hostfile.Append(l.d.path(l.o.joblog), modeJoblog)
}

// joblog adds a line for each attempt of a task. Its Seq is the task's place in a file;
// at none it is the attempt's number. That it cannot be written changes nothing of
// what the task came to.
func (l *launching) joblog(t task.Task, seq int) {
	if l.o.joblog == "" {
		return
	}
	if err := l.addLines(t, seq); err != nil {
		l.p.Warn("--joblog: the lines of task " + t.ID + " could not be added: " + err.Error())
	}
}

func (l *launching) addLines(t task.Task, seq int) error {
	f, err := l.joblogFile()
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
