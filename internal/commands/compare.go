package commands

import (
	"context"
	"errors"
	"slices"
	"time"

	"sbx/internal/config"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/views"
)

// compare runs the same task at several providers at once, and shows what differs.
// Nothing is tried again unless --attempts asks for it: a difference is what is
// looked for.
func (l *launching) compare(ctx context.Context) error {
	if !l.o.flags.Changed("attempts") {
		if err := l.o.flags.Set("attempts", "1"); err != nil {
			return err
		}
	}
	l.said, l.configs = map[string]bool{}, map[string]*config.Config{}
	var jobs []job
	for i, name := range l.o.compare {
		one := *l
		var err error
		if one.config, err = l.configOf(ctx, name, l.o); err != nil {
			return l.refused(err)
		}
		spec, err := one.spec(ctx)
		if err != nil {
			return l.refused(err)
		}
		jobs = append(jobs, job{seq: i + 1, label: name, spec: spec, env: l.box.Env, full: one.full})
	}
	err := l.crewed(ctx, jobs, func(ctx context.Context, c *crew) error {
		c.tabled = true
		return c.compared(ctx, jobs, c.run(ctx, jobs, len(jobs), c.anew))
	})
	return l.refused(err)
}

// anew launches a job as a task without a key.
func (c *crew) anew(ctx context.Context, j job) outcome {
	options := c.optionsOf(j)
	t, _, err := options.Ledger.Add(ctx, task.New(task.NewID(), "", j.spec, options.Owner, c.l.d.Now()))
	if err != nil {
		return outcome{job: j, err: err, verdict: err}
	}
	return c.bring(ctx, options, j, t)
}

// compared shows the outcomes side by side, in the order of --compare.
func (c *crew) compared(ctx context.Context, jobs []job, outcomes <-chan outcome) error {
	l := c.l
	t := &tally{jobs: len(jobs), codes: map[int]int{}}
	list, err := output.NewList(l.p, output.ListSpec[outcome]{Schema: l.schema, Columns: l.compareColumns()})
	if err != nil {
		return errors.Join(err, drained(outcomes))
	}
	progress := l.p.Progress("providers")
	defer progress.Done()
	var all []outcome
	for o := range outcomes {
		t.add(o)
		progress.Update(t.words())
		all = append(all, o)
		l.logged(o)
	}
	progress.Done()
	slices.SortFunc(all, func(a, b outcome) int { return a.seq - b.seq })
	for _, o := range all {
		_, own := errors.AsType[views.ProgramExit](o.verdict)
		add := list.Add
		if o.verdict != nil && !own {
			add = func(o outcome) error { return list.AddFailed(o, o.verdict) }
		}
		if add(o) != nil {
			break // the reader of stdout is gone
		}
	}
	said := difference(all, len(jobs))
	list.Set("difference", views.TextOrNil(said))
	list.Remark(said)
	return list.CloseAs(t.verdict(ctx))
}

// compareColumns are a comparison's.
func (l *launching) compareColumns() []output.Column[outcome] {
	own := []output.Column[outcome]{
		{Name: "compared", Head: "PROVIDER", Value: func(o outcome) any { return o.label }},
		{Name: "state", Value: func(o outcome) any { return views.TextOrNil(string(o.task.State)) }, Tone: func(o outcome) output.Tone { return o.row(l).Tone() }},
		{Name: "exit_code", Head: "EXIT", Value: func(o outcome) any { return o.exit().Code }},
		{Name: "class", Value: func(o outcome) any { return views.TextOrNil(string(o.exit().Class)) }},
		{Name: "cause", Value: func(o outcome) any { return views.TextOrNil(string(o.exit().Cause)) }},
		{Name: "create_seconds", Head: "CREATE", Value: func(o outcome) any { return secondsOrNil(o.created()) }},
		{Name: "first_output_seconds", Head: "FIRST OUTPUT", Value: func(o outcome) any { return secondsOrNil(o.firstOutput()) }},
		{Name: "duration_seconds", Head: "TOOK", Value: func(o outcome) any { return secondsOrNil(o.took()) }},
		{Name: "peak_mb", Value: func(o outcome) any { return o.attempt().PeakMB }},
		{Name: "memory_mb", Head: "LIMIT MB", Value: func(o outcome) any { return views.PositiveOrNil(o.attempt().MemoryMB) }},
		{Name: "messages", Value: func(o outcome) any { return o.attempt().Messages }},
		{Name: "oom_kills", Head: "KILLS", Value: func(o outcome) any { return o.attempt().OOMKills }},
	}
	known := map[string]bool{}
	for _, c := range own {
		known[c.Name] = true
	}
	for _, c := range output.Of(views.TaskItem(), func(o outcome) views.TaskRow { return o.row(l) }) { // what every item of run has
		if !known[c.Name] {
			c.Level = output.Extra
			own = append(own, c)
		}
	}
	return own
}

func secondsOrNil(d time.Duration, known bool) any {
	if !known {
		return nil
	}
	return output.Seconds(d)
}

// attempt is the last one; an empty one before the first.
func (o outcome) attempt() task.Attempt {
	if a := o.task.Last(); a != nil {
		return *a
	}
	return task.Attempt{}
}

func (o outcome) exit() task.Exit {
	if a := o.attempt(); a.Exit != nil {
		return *a.Exit
	}
	return task.Exit{Class: sandbox.Class("")}
}

// created is how long it took until the program ran.
func (o outcome) created() (time.Duration, bool) {
	a := o.attempt()
	return a.StartedAt.Sub(a.IntentAt), !a.StartedAt.IsZero()
}

func (o outcome) took() (time.Duration, bool) { return views.AttemptLength(o.attempt()) }

func (o outcome) firstOutput() (time.Duration, bool) {
	if o.heard == nil {
		return 0, false
	}
	return o.heard.firstOutput()
}
