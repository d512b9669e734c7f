package task

import (
	"context"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

const (
	// historyWindow and historyLimit bound which earlier tasks are read.
	historyWindow = 24 * time.Hour
	historyLimit  = 500
	// createWindow is how far back failed creates count: the escalation window.
	createWindow = 30 * time.Minute
)

// History is what tasks show about sandboxes and profiles: the live tasks, and those of the
// last day.
type History struct {
	tasks   map[string]Task
	holders map[sandbox.Ref]string // the live task that has the sandbox now
	now     time.Time
}

// ReadHistory reads the history from the ledger.
func ReadHistory(ctx context.Context, l Ledger, now time.Time) (History, error) {
	live, err := l.List(ctx, store.TaskQuery{Live: true})
	if err != nil {
		return History{}, err
	}
	recent, err := l.List(ctx, store.TaskQuery{Since: now.Add(-historyWindow), Limit: historyLimit})
	if err != nil {
		return History{}, err
	}
	h := History{tasks: map[string]Task{}, holders: map[sandbox.Ref]string{}, now: now}
	for _, t := range append(recent, live...) {
		h.tasks[t.ID] = t
	}
	for _, t := range live {
		for _, a := range t.Attempts {
			if a.Sandbox != "" && a.GoneAt.IsZero() {
				h.holders[a.Ref()] = t.ID
			}
		}
	}
	return h, nil
}

// Sandbox returns what tasks show about one sandbox: whether its work is over, and how
// often a limit ended an attempt of its task and of the task that this one resumes. A live
// task that has the sandbox now takes precedence over the task that made it, since a kept
// sandbox serves several. older reads a task that ended more than a day ago; false = it is
// not known.
func (h History) Sandbox(s sandbox.Sandbox, older func(id string) (Task, bool)) fleet.SandboxHistory {
	id := h.holders[s.Ref()]
	if id == "" && IsID(s.TaskID) {
		id = s.TaskID
	}
	t, known := h.lookUpTask(id, older)
	if !known {
		return fleet.SandboxHistory{}
	}
	found := fleet.SandboxHistory{Finished: sandbox.False, TimeLimitsHit: new(t.countLimitsHit())}
	if before, known := h.lookUpTask(t.ResumedFrom, older); known {
		*found.TimeLimitsHit += before.countLimitsHit()
	}
	if what, at, over := t.doneWith(s.Ref()); over {
		found.Finished = sandbox.True
		found.FinishedBy = sandbox.Evidence{What: "task", Value: what, Source: t.ID, At: at}
	}
	return found
}

func (h History) lookUpTask(id string, older func(id string) (Task, bool)) (Task, bool) {
	if id == "" {
		return Task{}, false
	}
	if t, known := h.tasks[id]; known {
		return t, true
	}
	return older(id)
}

// doneWith reports whether the task needs a sandbox no more: the task is over, or its
// program in that sandbox has ended.
func (t *Task) doneWith(ref sandbox.Ref) (what string, at time.Time, over bool) {
	if t.State.Final() {
		return string(t.State), t.EndedAt, true
	}
	for _, a := range t.Attempts {
		if a.Sandbox != "" && a.Ref() == ref && !a.EndedAt.IsZero() {
			return "its program has ended", a.EndedAt, true
		}
	}
	return "", time.Time{}, false
}

// countLimitsHit counts the attempts that a time limit of sbx or of the provider ended.
func (t *Task) countLimitsHit() int {
	n := 0
	for _, a := range t.Attempts {
		if a.hitLimit() {
			n++
		}
	}
	return n
}

func (a Attempt) hitLimit() bool {
	switch a.Expired {
	case ReasonCommand, ReasonAttempt, ReasonDeadline, ReasonInactivity:
		return true
	case ReasonNone, ReasonStopped, ReasonLost:
	}
	return a.Exit != nil && a.Exit.Class == sandbox.ClassTimeout
}

// createOutcome reports whether the attempt's own create made a sandbox, or the provider,
// the machine or a limit refused one. An invalid create counts as neither.
func (a Attempt) createOutcome() (made, refused bool) {
	switch {
	case a.Reused:
		return false, false
	case a.Sandbox != "":
		return true, false
	}
	switch fault.Kind(a.Fault) {
	case fault.KindUnavailable, fault.KindRefused, fault.KindUnknown, fault.KindTimeout, fault.KindPartial:
		return false, true
	default:
		return false, false
	}
}

// ProfileHistory is what the tasks of the last day show about one profile. Nil = nothing
// was tried.
type ProfileHistory struct {
	CreateFailures *int64 // creates of the last half hour that gave no sandbox
	Attempts       *int64 // attempts that ran a program and ended
	TimedOut       *int64 // of Attempts
	Inactive       *int64 // of Attempts, those that inactivity ended
	Stops          *int64 // of tasks that were stopped, those that are seen to have ended or are late
	StopsFailed    *int64 // of Stops, those without a verified end
}

// Profile counts the creates and attempts on one profile.
func (h History) Profile(name string) ProfileHistory {
	var all attemptCounts
	var stopped []Task
	for _, t := range h.tasks {
		for _, a := range t.Attempts {
			if a.Provider == name {
				all.add(a, h.now)
			}
		}
		if len(t.Attempts) > 0 && t.Attempts[len(t.Attempts)-1].Provider == name {
			stopped = append(stopped, t)
		}
	}
	var p ProfileHistory
	if all.creates > 0 {
		p.CreateFailures = &all.refused
	}
	if all.ended > 0 {
		p.Attempts, p.TimedOut, p.Inactive = &all.ended, &all.timedOut, &all.inactive
	}
	m := measuredTasks{stopped, h.now}
	if seen, asked := m.countSeen(m.stopEnds()); asked > 0 {
		p.Stops, p.StopsFailed = new(int64(asked)), new(int64(asked-seen))
	}
	return p
}

// attemptCounts counts attempts of one profile.
type attemptCounts struct{ creates, refused, ended, timedOut, inactive int64 }

func (c *attemptCounts) add(a Attempt, now time.Time) {
	if made, refused := a.createOutcome(); (made || refused) && now.Sub(a.IntentAt) <= createWindow {
		c.creates++
		if refused {
			c.refused++
		}
	}
	if a.StartedAt.IsZero() || a.EndedAt.IsZero() || now.Sub(a.EndedAt) > historyWindow {
		return
	}
	c.ended++
	if a.hitLimit() {
		c.timedOut++
	}
	if a.Expired == ReasonInactivity {
		c.inactive++
	}
}
