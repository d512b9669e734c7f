package launch

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/store"
	"sbx/internal/task"
)

// BatchJob is one task of a batch.
type BatchJob struct {
	PreparedTask

	Seq   int    // its place, from 1
	Label string // what it is called where several run at once
	Key   string // of its own; "" = its work makes one
	Place string // in the file that it comes from; "" = in none
	Needs []int  // the Seq of each job that has to complete before it begins

	work string
	twin int // how many jobs before it are the same
}

// BatchRequest is what is asked of a batch.
type BatchRequest struct {
	Name        string // of the batch: what was completed under it is not done again
	Jobs        []BatchJob
	Parallel    int  // how many run at once
	Again       bool // launch also what was completed before
	RetryFailed bool // launch also what failed before
	Fresh       bool // each job is a new task without a key, whatever was done before
	BudgetMB    int64
	// Show makes the observer of a job's task.
	Show func(BatchJob) TaskObserver
}

// BatchOutcome is what became of a job. It is an item of Batch.
type BatchOutcome struct {
	BatchJob

	Task    task.Task
	Before  bool // it had ended before this run
	Blocked bool // it was not started, since a job that it needs did not complete
	Err     error
	Verdict error // what its end is for the process; nil = completed

	times *outputTimes
}

// BatchResult is what became of a batch.
type BatchResult struct {
	Tally BatchTally
	// Verdict is nil when all is completed.
	Verdict error
}

// Batch launches tasks, so many at once, and waits for their ends. Items are of type
// BatchOutcome. An error says that nothing was launched.
func Batch(ctx context.Context, env *ops.Env, req BatchRequest, watch ops.Observer) (result BatchResult, err error) {
	b := &batch{env: env, watch: watch, req: req, stop: ctx.Done(), pushing: map[string]task.Options{}}
	err = b.withParts(ctx, func(ctx context.Context) error {
		launch := b.launchFresh
		if !req.Fresh {
			round, err := b.launchRound(ctx)
			if err != nil {
				return err
			}
			launch = func(ctx context.Context, j BatchJob) BatchOutcome { return b.launchOnce(ctx, j, req.keyOf(j, round)) }
		}
		result = b.collectOutcomes(ctx, b.startJobs(ctx, launch))
		return nil
	})
	return result, err
}

func (b *batch) collectOutcomes(ctx context.Context, outcomes <-chan BatchOutcome) BatchResult {
	label := "tasks"
	if b.req.Fresh {
		label = "providers"
	}
	progress := b.watch.Progress(label)
	defer progress.Done()
	defer b.env.SendMeanwhile(ctx)()
	r := BatchResult{Tally: BatchTally{Jobs: len(b.req.Jobs), codes: map[int]int{}}}
	for o := range outcomes {
		r.Tally.addOutcome(o)
		progress.Update(r.Tally.Text())
		b.watch.Item(o)
	}
	r.Verdict = r.Tally.exitVerdict(ctx)
	return r
}

// batch runs the jobs of a request.
type batch struct {
	env     *ops.Env
	watch   ops.Observer
	req     BatchRequest
	parts   ops.TaskParts
	store   store.Store
	options task.Options
	pushing map[string]task.Options // by push target: each has credentials of its own
	stop    <-chan struct{}         // closed: nothing more is launched, and what runs is stopped
}

// withParts opens what all jobs need, and goes on.
func (b *batch) withParts(ctx context.Context, do func(context.Context) error) error {
	jobs := b.req.Jobs
	var places []string
	for _, j := range jobs {
		places = append(append(places, j.Spec.Provider), j.Spec.Fallback...)
	}
	slices.Sort(places)
	f, err := b.env.Only(ctx, slices.Compact(places)...)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if err := f.Vet(j.Spec.Provider, j.Sandbox); err != nil {
			return fault.Placed(err, "", j.Place)
		}
	}
	b.parts = ops.TaskParts{Fleet: f, Watch: b.watch, BudgetMB: b.req.BudgetMB}
	return b.env.WithTasks(ctx, b.parts, func(st store.Store, options task.Options) error {
		b.env.SweepTasks(ctx, b.watch, options)
		b.store, b.options = st, options
		b.parts.Store, b.parts.Protected = st, options.Protected
		for _, j := range jobs {
			if err := b.checkCredentials(ctx, j); err != nil {
				return err
			}
		}
		return do(ctx)
	})
}

func (b *batch) checkCredentials(ctx context.Context, j BatchJob) error {
	if _, known := b.pushing[j.Spec.Push]; known || j.Spec.Push == "" {
		return nil
	}
	parts := b.parts
	parts.Secret = j.Secret
	options, err := b.env.Tasks(ctx, parts)
	b.pushing[j.Spec.Push] = options
	return err
}

// launchRound is which time the batch is launched on purpose: what was completed in an
// earlier round counts no more.
func (b *batch) launchRound(ctx context.Context) (int, error) {
	return b.counterUnder(ctx, batchKind, batchKey(b.req.Name), b.req.Name, func(round int) int {
		if b.req.Again {
			return round + 1
		}
		return round
	})
}

// counterUnder reads the number stored under a key, 1 without one, and stores what next makes
// of it. It repeats while other processes change the number first.
func (b *batch) counterUnder(ctx context.Context, kind, key, name string, next func(int) int) (int, error) {
	for {
		d, err := b.store.Doc(ctx, kind, key)
		if err != nil {
			return 0, err
		}
		state := batchState{Name: name, Round: 1}
		if d.Version > 0 {
			if err := json.Unmarshal(d.Body, &state); err != nil || state.Round < 1 {
				return 0, fault.New(fault.KindUnknown, "the record of %s cannot be read", name).
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
		if _, err = b.store.SwapDoc(ctx, d); !errors.Is(err, store.ErrSwapped) {
			return state.Round, err
		}
	}
}

// startJobs runs the jobs in their order, each after those that it needs, so many at once, and gives
// each outcome as it comes. After a stop no more is launched.
func (b *batch) startJobs(ctx context.Context, do func(context.Context, BatchJob) BatchOutcome) <-chan BatchOutcome {
	jobs := b.req.Jobs
	life, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	next, outcomes := make(chan BatchJob), make(chan BatchOutcome)
	order := newJobOrder(jobs)
	go func() {
		defer close(next)
		for b.offerNext(order, next, outcomes) {
		}
	}()
	over := b.env.OnInterrupts(ctx, func() {
		b.watch.Warn("stopping the running tasks; no more are launched. Interrupt again to leave the cleanup to the next sbx")
	}, leave)
	var workers sync.WaitGroup
	for range min(b.req.Parallel, len(jobs)) {
		workers.Go(func() {
			for j := range next {
				o := do(life, j)
				outcomes <- o
				order.ended(o)
			}
		})
	}
	go func() {
		workers.Wait()
		over()
		leave(nil)
		close(outcomes)
	}()
	return outcomes
}

// launchOnce launches a job unless it was done before, or goes on with it where a dead
// process has left it.
func (b *batch) launchOnce(ctx context.Context, j BatchJob, key string) BatchOutcome {
	options := b.optionsOf(j)
	t, added, err := b.enlistTask(ctx, options, j, key)
	switch {
	case err != nil:
		return BatchOutcome{BatchJob: j, Err: err, Verdict: err}
	case !added && t.State.Final():
		return BatchOutcome{BatchJob: j, Task: t, Before: true, Verdict: TaskVerdict(t, nil)}
	case !added:
		if t, err = b.joinTask(ctx, options, t); err != nil || t.State.Final() {
			return BatchOutcome{BatchJob: j, Task: t, Err: err, Verdict: TaskVerdict(t, err)}
		}
	}
	return b.runTask(ctx, options, j, t)
}

func (b *batch) optionsOf(j BatchJob) task.Options {
	if own, ok := b.pushing[j.Spec.Push]; ok {
		return own
	}
	return b.options
}

// enlistTask keeps a new task, unless there is one of the key that need not be done
// again. One that was stopped is not done: it gets a successor.
func (b *batch) enlistTask(ctx context.Context, options task.Options, j BatchJob, key string) (task.Task, bool, error) {
	for n := 1; ; {
		name := key
		if n > 1 {
			name = task.SuccessorKey(key, n)
		}
		t, added, err := options.Ledger.Enlist(ctx, task.New(task.NewID(), name, j.Spec, options.Owner, b.env.Now()))
		if err != nil || added {
			return t, added, err
		}
		if t.Spec.Work() != j.work {
			return t, false, fault.Usage("the key %q belongs to task %s, which has another command or other settings", name, t.ID).
				WithHint("`sbx tasks show %s` shows them; use another key", t.ID)
		}
		if !t.State.Final() || t.State == task.Completed {
			return t, false, nil
		}
		again := t.State == task.Stopped || t.NeverRan() || b.req.RetryFailed
		next, err := b.successorNumber(ctx, key, n, again)
		if err != nil || next == n {
			return t, false, err
		}
		n = next
	}
}

// successorNumber is the number of the task that came last under a key; with again the one
// after it, where n is that.
func (b *batch) successorNumber(ctx context.Context, key string, n int, again bool) (int, error) {
	last, err := b.counterUnder(ctx, successorKind, key, key, func(last int) int {
		if last > n || !again {
			return last
		}
		return n + 1
	})
	return max(n, last), err
}

// joinTask waits for a task that another process runs, or takes it over from a dead one.
func (b *batch) joinTask(ctx context.Context, options task.Options, t task.Task) (task.Task, error) {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-b.stop: // what another process runs is not stopped by this one's operator
			cut(fault.New(fault.KindCanceled, "stopped while another process ran it"))
		case <-over:
		}
	}()
	now, _, err := joinTask(ctx, b.watch, options, t, false)
	return now, err
}

func (b *batch) runTask(ctx context.Context, options task.Options, j BatchJob, t task.Task) BatchOutcome {
	show := &outputTimes{TaskObserver: b.req.Show(j)}
	options.Observer = show
	now, err := RunControlled(ctx, b.env, b.watch, options.Ledger, t, func() (task.Task, error) {
		return task.NewRunner(options, j.Env, b.stop).Run(ctx, t)
	})
	show.Close()
	return BatchOutcome{BatchJob: j, Task: now, Err: err, Verdict: TaskVerdict(now, err), times: show}
}

// launchFresh launches a job as a task without a key.
func (b *batch) launchFresh(ctx context.Context, j BatchJob) BatchOutcome {
	options := b.optionsOf(j)
	t, _, err := options.Ledger.Add(ctx, task.New(task.NewID(), "", j.Spec, options.Owner, b.env.Now()))
	if err != nil {
		return BatchOutcome{BatchJob: j, Err: err, Verdict: err}
	}
	return b.runTask(ctx, options, j, t)
}

// The kinds of the counters: deliberate launches of a batch, and tasks of a key.
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
