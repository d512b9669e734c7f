package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// StopRequest says which tasks are stopped: by id, by the beginning of one, or by key.
type StopRequest struct {
	Tasks    []string
	Profiles []string // as in TasksRequest: another task is not found
}

// Forbidden is an item of Stop: from now on the task publishes nothing.
type Forbidden struct {
	Task  string
	After time.Duration // since the stop began
}

// NotGone is an item of Stop: what is left of a task that is published already, or over,
// was not seen to be gone.
type NotGone struct {
	Task string
	Err  error
}

// Stopped is what a stop has reached for one task.
type Stopped struct {
	Task           task.Task
	Word           string // the id, else the word that named no task
	WasOver        bool   // it had ended before
	Forbidden      bool   // it will not publish
	ForbiddenAfter time.Duration
	Gone           bool // every sandbox made for it was seen to be gone
	GoneAfter      time.Duration
	Err            error
}

// Stop stops tasks: first it prevents the publication, then it ends everything made for them
// and verifies that it is gone. Items are of types Forbidden and NotGone. The error says that
// nothing was tried; the error of one task is in its result.
func Stop(ctx context.Context, env *ops.Env, req StopRequest, watch ops.Observer) (results []Stopped, err error) {
	f, err := env.Only(ctx)
	if err != nil {
		return nil, err
	}
	err = env.WithTasks(ctx, ops.TaskParts{Fleet: f, Watch: watch}, func(_ store.Store, o task.Options) error {
		s := &stopping{options: o, watch: watch, profiles: req.Profiles, stopper: task.NewStopper(o)}
		meant, err := s.findAll(ctx, req.Tasks)
		if err == nil {
			results = s.stopAll(ctx, meant)
		}
		return err
	})
	return results, err
}

type stopping struct {
	options  task.Options
	stopper  *task.Stopper
	profiles []string // of the request

	mu    sync.Mutex
	watch ops.Observer
}

// meant is the task that a word names, or why it names none.
type meant struct {
	word string
	task task.Task
	err  error
}

// findAll finds what the words name, each once. The beginning of an id is asked for, and refused where nobody can be
// asked.
func (s *stopping) findAll(ctx context.Context, words []string) (all []meant, err error) {
	var begun []string
	for _, w := range words {
		if slices.ContainsFunc(all, func(m meant) bool { return m.word == w }) {
			continue
		}
		m := meant{word: w}
		if m.task, m.err = ops.FindTask(ctx, s.options.Ledger, w); m.err == nil {
			m.err = ops.TaskWithin(m.task, s.profiles)
		}
		switch is := m.err == nil && w != m.task.ID && strings.HasPrefix(m.task.ID, w); {
		case is && !s.watch.Attended():
			m.err = fault.Usage("%q is only the beginning of an id", w).WithHint("write %s", m.task.ID)
		case is:
			begun = append(begun, w+" is "+m.task.ID)
		}
		all = append(all, m)
	}
	if len(begun) > 0 {
		err = ops.ConfirmBegun(ctx, s.watch, ops.Question{Prompt: "stop them", Objection: strings.Join(begun, ", ")})
	}
	return all, err
}

func (s *stopping) stopAll(ctx context.Context, distinct []meant) []Stopped {
	progress := s.watch.Progress("stopping tasks")
	defer progress.Done()
	results, over := make([]Stopped, len(distinct)), 0
	var wg sync.WaitGroup
	for i, one := range distinct {
		wg.Go(func() {
			results[i] = s.stopOne(ctx, one)
			s.mu.Lock()
			defer s.mu.Unlock()
			over++
			progress.Update(ops.PartText(over, len(distinct)))
		})
	}
	wg.Wait()
	return results
}

func (s *stopping) stopOne(ctx context.Context, m meant) Stopped {
	began := time.Now()
	r := Stopped{Word: m.word}
	if m.err != nil {
		r.Err = ops.HintSandbox(m.err, m.word, "terminate")
		return r
	}
	t := m.task
	r.Word, r.WasOver = t.ID, t.State.Final()
	var err error
	if r.Task, err = s.stopper.ForbidPublication(ctx, t.ID, "sbx stop of "+s.options.Owner.Who); err != nil {
		r.Err = fault.Placed(err, "", "stop "+t.ID)
		if !task.TooLate(err) {
			return r
		}
	} else {
		r.Forbidden, r.ForbiddenAfter = true, time.Since(began)
		if !r.WasOver {
			s.reportItem(Forbidden{Task: t.ID, After: r.ForbiddenAfter})
		}
	}
	now, err := s.stopper.End(ctx, r.Task)
	r.Task, r.GoneAfter = now, time.Since(began)
	if err != nil && r.Err != nil {
		s.reportItem(NotGone{Task: t.ID, Err: err})
		return r
	}
	if err != nil {
		r.Err = fault.Placed(err, "", "stop "+t.ID)
		if errors.Is(err, task.ErrUnverified) {
			r.Err = fault.New(fault.KindUnverified, "%w", err).WithHint("the next sbx continues the cleanup; `sbx tasks show %s` shows what is left", t.ID)
		}
		return r
	}
	r.Gone = true
	return r
}

// reportItem keeps an observer to one goroutine at a time.
func (s *stopping) reportItem(item any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.Item(item)
}

// StopAct plans the stop of tasks.
func StopAct(env *ops.Env, tasks []string) *ops.Act {
	a := &ops.Act{Verb: "stop", Refused: env.MayChange(), Objection: fmt.Sprintf("%d tasks would be stopped: they publish nothing from then on", len(tasks))}
	for _, id := range tasks {
		a.Targets = append(a.Targets, ops.PlannedEnd{Ref: sandbox.Ref{ID: id}, Reason: "its task"})
	}
	a.Carry = func(ctx context.Context, watch ops.Observer, _ ops.Allowed) ops.ActResult {
		stopped, err := Stop(ctx, env, StopRequest{Tasks: tasks}, watch)
		result := ops.ActResult{Err: err}
		for _, s := range stopped {
			e := sandbox.Ending{Ref: sandbox.Ref{ID: s.Word}, Outcome: sandbox.OutcomeVerified, Err: s.Err}
			switch {
			case s.Err != nil && s.Forbidden:
				e.Outcome, e.Reason = sandbox.OutcomeAccepted, s.Err.Error()
			case s.Err != nil:
				e.Outcome, e.Reason = sandbox.OutcomeFailed, s.Err.Error()
			case s.WasOver:
				e.Outcome, e.Reason = sandbox.OutcomeAlreadyGone, "it had ended before"
			}
			result.Endings, result.Err = append(result.Endings, e), errors.Join(result.Err, s.Err)
		}
		return result
	}
	return a
}
