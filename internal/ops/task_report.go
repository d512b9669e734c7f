package ops

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/notify"
	"sbx/internal/task"
)

// NotifyFailedTask notifies people of a task that failed or reached a limit, after its end is on
// record. Nobody is notified of a stop, which somebody asked for. The tasks of one process make one
// message.
func (e *Env) NotifyFailedTask(watch Reporter, t task.Task) {
	if t.State != task.Failed && t.State != task.TimedOut {
		return
	}
	o := &e.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.tasks) == 0 {
		o.due = append(o.due, outgoing{watch, func(ctx context.Context, n *notify.Notifier) error {
			_, err := e.Send(ctx, n, e.tasksMessage(o.takeTasks()), nil)
			return err
		}})
	}
	o.tasks = append(o.tasks, t)
}

func (o *outbox) takeTasks() []task.Task {
	o.mu.Lock()
	defer o.mu.Unlock()
	tasks := o.tasks
	o.tasks = nil
	return tasks
}

// IsAttended reports whether a person sees at the terminal what an operation reports.
func IsAttended(watch Reporter) bool {
	person, ok := watch.(interface{ Attended() bool })
	return ok && person.Attended()
}

// tasksMessage names the tasks that failed, with their last attempts; of one task all attempts.
func (e *Env) tasksMessage(tasks []task.Task) notify.Message {
	if len(tasks) == 1 {
		return e.taskMessage(tasks[0])
	}
	program := e.Process.Name()
	m := notify.Message{
		Verb: "run", Host: e.Process.Host, Kind: notify.KindFailed, Severity: "warning", Key: fmt.Sprintf("tasks %s and %d more", tasks[0].ID, len(tasks)-1), At: e.Now(),
		Title: fmt.Sprintf("sbx: %d tasks failed", len(tasks)), Figures: map[string]float64{"failed tasks": float64(len(tasks))}, Causes: map[string]int{},
		Next: []string{program + " tasks --state failed,timed_out", program + " tasks show " + tasks[0].ID},
	}
	for _, t := range tasks {
		one := e.taskMessage(t)
		item := notify.Item{Ref: t.ID, Task: t.ID, Reason: strings.ReplaceAll(one.Text, "\n", "; ")}
		if n := len(one.Items); n > 0 {
			item = one.Items[n-1]
		}
		for cause, n := range one.Causes {
			m.Causes[cause] += n
		}
		m.Items, m.Providers = append(m.Items, item), append(m.Providers, one.Providers...)
	}
	slices.Sort(m.Providers)
	m.Providers = slices.Compact(m.Providers)
	return m
}

// taskMessage names the attempts and why they ended. The output of a program is not in it.
func (e *Env) taskMessage(t task.Task) notify.Message {
	program := e.Process.Name()
	m := notify.Message{
		Verb: "run", RunID: t.ID, Host: e.Process.Host, Kind: notify.KindFailed, Severity: "warning", Key: "task " + t.ID, At: e.Now(),
		Title: fmt.Sprintf("sbx: task %s %s", t.ID, strings.ReplaceAll(string(t.State), "_", " ")), Text: t.Refused,
		Figures: map[string]float64{"attempts": float64(len(t.Attempts)), "exit code": float64(t.ExitCode())}, Causes: map[string]int{},
		Next: []string{program + " tasks show " + t.ID},
	}
	if t.Reason != task.ReasonNone {
		m.Text = strings.TrimSpace("limit: " + string(t.Reason) + "\n" + m.Text)
	}
	for _, a := range t.Attempts {
		item := notify.Item{Ref: "attempt " + strconv.Itoa(a.N), Task: t.ID, Reason: a.Fault}
		if a.Sandbox != "" {
			item.Ref = a.Ref().String()
		}
		if a.Exit != nil {
			item.Outcome, item.Cause = string(a.Exit.Class), string(a.Exit.Cause)
			if item.Cause != "" {
				m.Causes[item.Cause]++
			}
		}
		m.Items, m.Providers = append(m.Items, item), append(m.Providers, a.Provider)
	}
	return m
}
