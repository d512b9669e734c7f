package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/views"
)

// crew runs the jobs of a batch, some of them at once.
type crew struct {
	l       *launching
	parts   ops.TaskParts
	store   store.Store
	options task.Options
	pushing map[string]task.Options // by push target: each has credentials of its own
	stop    <-chan struct{}         // closed: nothing more is launched, and what runs is stopped
	tabled  bool                    // stdout is for a table in every format: no output goes there
	width   int                     // of the longest label
	pool    *task.Pool              // of --warm; nil = nothing is made ahead
	left    error                   // what the pool leaves behind; to be read when all outcomes are there
}

// outcome is what became of a job.
type outcome struct {
	job
	task    task.Task
	before  bool // it had ended before this run
	err     error
	verdict error // nil = completed
	heard   *listener
}

// batch launches the tasks of --file.
func (l *launching) batch(ctx context.Context) error {
	file, err := l.readBatch(ctx)
	if err != nil {
		return l.refused(err)
	}
	err = l.crewed(ctx, file.jobs, func(ctx context.Context, c *crew) error {
		if err := c.warms(file.jobs); err != nil {
			return err
		}
		round, err := c.round(ctx, file.name)
		if err != nil {
			return err
		}
		return c.report(ctx, file.jobs, c.run(ctx, file.jobs, l.o.parallel, func(ctx context.Context, j job) outcome {
			return c.once(ctx, j, file.keyOf(j, round))
		}))
	})
	return l.refused(err)
}

// refused shows an error that came before any item as a list without items.
func (l *launching) refused(err error) error {
	if err == nil || alreadyShown(err) {
		return err
	}
	if _, own := errors.AsType[views.ProgramExit](err); own {
		return err
	}
	return l.p.Failed(l.schema, output.ShapeList, err)
}

// crewed opens what all jobs need, and goes on.
func (l *launching) crewed(ctx context.Context, jobs []job, do func(context.Context, *crew) error) error {
	var places []string
	for _, j := range jobs {
		places = append(append(places, j.spec.Provider), j.spec.Fallback...)
	}
	slices.Sort(places)
	f, err := l.d.Only(ctx, slices.Compact(places)...)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if err := f.Vet(j.spec.Provider, j.full); err != nil {
			return fault.Placed(err, "", j.place)
		}
	}
	c := &crew{l: l, parts: ops.TaskParts{Fleet: f, Notice: l.p.Note, BudgetMB: l.o.budgetMB}, stop: ctx.Done(), pushing: map[string]task.Options{}}
	for _, j := range jobs {
		c.width = max(c.width, len(output.EscapeLine(j.label)))
	}
	return l.d.WithTasks(ctx, c.parts, func(st store.Store, options task.Options) error {
		l.d.SweepTasks(ctx, l.p, options)
		c.store, c.options, c.parts.Store = st, options, st
		for _, j := range jobs {
			if err := c.credentials(ctx, j); err != nil {
				return err
			}
		}
		return do(ctx, c)
	})
}

// credentials joins what a job pushes with.
func (c *crew) credentials(ctx context.Context, j job) error {
	if _, known := c.pushing[j.spec.Push]; known || j.spec.Push == "" {
		return nil
	}
	parts := c.parts
	parts.Secret = j.secret
	options, err := c.l.d.Tasks(ctx, parts)
	c.pushing[j.spec.Push] = options
	return err
}

// round is which time the batch is launched on purpose: what was completed in an
// earlier round counts no more.
func (c *crew) round(ctx context.Context, name string) (int, error) {
	return c.count(ctx, batchKind, batchKey(name), name, func(round int) int {
		if c.l.o.again {
			return round + 1
		}
		return round
	})
}

// count reads a number that is kept under a key, 1 where none is, and writes what next
// makes of it, as often as it takes to be the one who does.
func (c *crew) count(ctx context.Context, kind, key, name string, next func(int) int) (int, error) {
	for {
		d, err := c.store.Doc(ctx, kind, key)
		if err != nil {
			return 0, err
		}
		state := batchState{Name: name, Round: 1}
		if d.Version > 0 {
			if err := json.Unmarshal(d.Body, &state); err != nil || state.Round < 1 {
				return 0, fault.New(fault.KindUnknown, "what is kept of %s cannot be read", name).
					WithHint("give the file a name of its own with `batch: NAME`, or the task another key")
			}
		}
		was := state.Round
		if state.Round = next(was); state.Round == was {
			return was, nil
		}
		if d.Body, err = json.Marshal(state); err != nil {
			return 0, err
		}
		if _, err = c.store.SwapDoc(ctx, d); !errors.Is(err, store.ErrSwapped) {
			return state.Round, err
		}
	}
}

// warms checks that something of the batch can be made ahead.
func (c *crew) warms(jobs []job) error {
	if c.l.o.warm == 0 || slices.ContainsFunc(jobs, func(j job) bool { return c.options.Warms(j.spec) }) {
		return nil
	}
	return fault.Usage("--warm: nothing is made ahead on this machine, where a sandbox takes milliseconds").WithHint("leave --warm out, or name another --provider")
}

// run runs the jobs in their order, so many at once, and tells each outcome as it
// comes. After a stop no more is launched.
func (c *crew) run(ctx context.Context, jobs []job, parallel int, do func(context.Context, job) outcome) <-chan outcome {
	life, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	next, outcomes := make(chan job), make(chan outcome)
	go func() {
		defer close(next)
		for _, j := range jobs {
			select {
			case <-c.stop:
				return
			default:
			}
			select {
			case next <- j:
			case <-c.stop:
				return
			}
		}
	}()
	if c.l.o.warm > 0 {
		c.pool = task.NewPool(ctx, life, c.options, c.l.o.warm, specsOf(jobs))
	}
	over := c.l.d.OnInterrupts(ctx, func() {
		c.l.p.Warn("stopping what runs, and nothing more is launched; once more leaves it to the next sbx")
	}, leave)
	var workers sync.WaitGroup
	for range min(parallel, len(jobs)) {
		workers.Go(func() {
			for j := range next {
				outcomes <- do(life, j)
			}
		})
	}
	go func() {
		workers.Wait()
		c.left = c.pool.Close(life)
		over()
		leave(nil)
		close(outcomes)
	}()
	return outcomes
}

// once launches a job unless it was done before, or goes on with it where a dead
// process has left it.
func (c *crew) once(ctx context.Context, j job, key string) outcome {
	c.pool.Begins(j.spec)
	options := c.optionsOf(j)
	t, added, err := c.enlist(ctx, options, j, key)
	switch {
	case err != nil:
		return outcome{job: j, err: err, verdict: err}
	case !added && t.State.Over():
		return outcome{job: j, task: t, before: true, verdict: views.TaskVerdict(t, nil)}
	case !added:
		if t, err = c.join(ctx, options, t); err != nil || t.State.Over() {
			return outcome{job: j, task: t, err: err, verdict: views.TaskVerdict(t, err)}
		}
	}
	return c.bring(ctx, options, j, t)
}

func specsOf(jobs []job) []task.Spec {
	specs := make([]task.Spec, len(jobs))
	for i, j := range jobs {
		specs[i] = j.spec
	}
	return specs
}

func (c *crew) optionsOf(j job) task.Options {
	if own, ok := c.pushing[j.spec.Push]; ok {
		return own
	}
	return c.options
}

// enlist keeps a new task, unless there is one of the key that need not be done
// again. One that was stopped is not done: it gets a successor.
func (c *crew) enlist(ctx context.Context, options task.Options, j job, key string) (task.Task, bool, error) {
	for n := 1; ; {
		name := key
		if n > 1 {
			name = fmt.Sprintf("%s~%d", key, n)
		}
		t, added, err := options.Ledger.Enlist(ctx, task.New(task.NewID(), name, j.spec, options.Owner, c.l.d.Now()))
		if err != nil || added {
			return t, added, err
		}
		if t.Spec.Work() != j.work {
			return t, false, fault.Usage("the key %q belongs to task %s, which does something else", name, t.ID).
				WithHint("`sbx tasks show %s` says what; give this one another key", t.ID)
		}
		if !t.State.Over() || t.State == task.Completed {
			return t, false, nil
		}
		again := t.State == task.Stopped || c.l.o.retryFailed
		next, err := c.successor(ctx, key, n, again)
		if err != nil || next == n {
			return t, false, err
		}
		n = next
	}
}

// successor is the number of the task that came last under a key; with again the one
// after it, where n is that.
func (c *crew) successor(ctx context.Context, key string, n int, again bool) (int, error) {
	last, err := c.count(ctx, successorKind, key, key, func(last int) int {
		if last > n || !again {
			return last
		}
		return n + 1
	})
	return max(n, last), err
}

// join waits for a task that another process runs, or takes it over from a dead one.
func (c *crew) join(ctx context.Context, options task.Options, t task.Task) (task.Task, error) {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-c.stop: // what another process runs is not stopped by this one's operator
			cut(fault.New(fault.KindCanceled, "stopped while another process ran it"))
		case <-over:
		}
	}()
	now, _, err := c.l.join(ctx, options, t, false)
	return now, err
}

// bring runs a job's task in this process.
func (c *crew) bring(ctx context.Context, options task.Options, j job, t task.Task) outcome {
	ear := c.listen(j)
	options.Ear, options.Pool = ear, c.pool
	now, err := c.l.d.RunControlled(ctx, c.l.p, options.Ledger, t, func() (task.Task, error) {
		return task.NewRunner(options, j.env, c.stop).Run(ctx, t)
	})
	ear.Close()
	return outcome{job: j, task: now, err: err, verdict: views.TaskVerdict(now, err), heard: ear}
}

// Under what it is kept how often a batch was launched on purpose, and how many tasks
// a key has had.
const (
	batchKind     = "batch"
	successorKind = "batch-key"
)

type batchState struct {
	Name  string `json:"name"`
	Round int    `json:"round"`
}

func batchKey(name string) string {
	const longest = 512
	if len(name) <= longest {
		return name
	}
	return name[len(name)-longest:]
}

// row is an outcome as it is shown.
func (o outcome) row(l *launching) views.TaskRow {
	return views.TaskRow{Task: o.task, Now: l.d.Now(), Alive: sandbox.Unknown}
}
