package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// StopRequest says which tasks are stopped: by id, by the beginning of one, or by key.
type StopRequest struct {
	Tasks      []string
	Profiles   []string // as in TasksRequest: another task is not found
	Unattended bool     // nobody can be asked
	Line       []string // as a person types it
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

// PlanStop plans to stop tasks: first it prevents the publication, then it ends everything made for them and verifies
// that it is gone. Targets are the tasks, without a provider. Items of Do are of types Forbidden, NotGone and Stopped.
// An error says that nothing was read.
func PlanStop(ctx context.Context, env *ops.Env, req StopRequest) (*ops.Act, error) {
	a := &ops.Act{Verb: "stop", At: env.Now(), Line: req.Line, Refused: env.MayChange()}
	var all []meant
	err := env.ReadTasks(func(l task.Ledger) error {
		all = findAll(ctx, l, req)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var begun []string
	for _, m := range all {
		a.Targets = append(a.Targets, ops.PlannedEnd{Ref: m.target(), Reason: "its task"})
		if m.begun {
			begun = append(begun, m.word+" is "+m.id)
		}
	}
	a.Objection = fmt.Sprintf("%d tasks would be stopped: they publish nothing from then on", len(all))
	if len(begun) > 0 {
		q := ops.NewQuestion(string(safety.AskYes), "stop them")
		q.Objection = strings.Join(begun, ", ")
		a.Asks = []ops.Question{q}
	}
	a.Execute = func(ctx context.Context, watch ops.Observer, allowed ops.Allowed) ops.ActResult {
		return executeStop(ctx, env, ops.Narrow(allowed, all, meant.target), watch)
	}
	return a, nil
}

func executeStop(ctx context.Context, env *ops.Env, all []meant, watch ops.Observer) (result ops.ActResult) {
	f, err := env.Only(ctx)
	if err != nil {
		return ops.NotBegun("", err)
	}
	err = env.WithTasks(ctx, ops.TaskParts{Fleet: f, Watch: watch}, func(_ store.Store, o task.Options) error {
		s := &stopping{options: o, watch: watch, stopper: task.NewStopper(o)}
		for _, one := range s.stopAll(ctx, all) {
			watch.Item(one)
			result.Endings, result.Err = append(result.Endings, one.ending()), errors.Join(result.Err, one.Err)
		}
		return nil
	})
	if err != nil {
		return ops.NotBegun("", err)
	}
	return result
}

// ending is what a stop has reached, as that of a sandbox.
func (s Stopped) ending() sandbox.Ending {
	e := sandbox.Ending{Ref: sandbox.Ref{ID: s.Word}, Outcome: sandbox.OutcomeVerified, Err: s.Err}
	switch {
	case s.Err != nil && s.Forbidden:
		e.Outcome, e.Reason = sandbox.OutcomeAccepted, s.Err.Error()
	case s.Err != nil:
		e.Outcome, e.Reason = sandbox.OutcomeFailed, s.Err.Error()
	case s.WasOver:
		e.Outcome, e.Reason = sandbox.OutcomeAlreadyGone, "it had ended before"
	}
	return e
}

type stopping struct {
	options task.Options
	stopper *task.Stopper

	mu    sync.Mutex
	watch ops.Observer
}

// meant is the task that a word names, or why it names none.
type meant struct {
	word  string
	id    string
	begun bool // the word is only the beginning of it
	err   error
}

func (m meant) target() sandbox.Ref { return sandbox.Ref{ID: cmp.Or(m.id, m.word)} }

// findAll finds what the words name, each once. The beginning of an id is refused where nobody can be asked.
func findAll(ctx context.Context, ledger task.Ledger, req StopRequest) (all []meant) {
	for _, w := range req.Tasks {
		if slices.ContainsFunc(all, func(m meant) bool { return m.word == w }) {
			continue
		}
		t, err := ops.FindTask(ctx, ledger, w)
		if err == nil {
			err = ops.TaskWithin(t, req.Profiles)
		} else {
			err = ops.HintSandbox(err, w, "terminate")
		}
		m := meant{word: w, err: err}
		if err == nil {
			m.id, m.begun = t.ID, w != t.ID && strings.HasPrefix(t.ID, w)
		}
		if m.begun && req.Unattended {
			m.begun = false
			m.err = fault.Usage("%q is only the beginning of an id", w).WithHint("write %s", t.ID)
		}
		all = append(all, m)
	}
	return all
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
	r := Stopped{Word: m.word, Err: m.err}
	if m.err != nil {
		return r
	}
	t, err := s.options.Ledger.Read(ctx, m.id)
	if err != nil {
		r.Err = fault.Placed(err, "", "stop "+m.id)
		return r
	}
	r.Word, r.WasOver = t.ID, t.State.Final()
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
