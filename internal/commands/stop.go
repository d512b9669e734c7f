package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/store"
	"sbx/internal/task"
)

const stopSchema = "sbx.stop/v1"

func newStop(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "stop TASK...",
		GroupID: groupAct,
		Short:   "Stop tasks: nothing is published any more, and all is gone",
		Long: "Stop tasks from any process and any host that shares the store.\n\n" +
			"Each answers with two lines: `will not publish` as soon as that is certain, and\n" +
			"`gone` when every sandbox made for it was seen to be gone. What a completed\n" +
			"task has kept is ended, too. Exit 0 means both, 8 the first alone, 11 that it is\n" +
			"published already (it says what and where, and ends what is left), 5 that there\n" +
			"is no such task.\n" +
			"`-` reads TASKs from standard input.",
		Example:           "sbx stop t-k3v9x2mq7abc\nsbx tasks -o name | sbx stop -",
		Args:              usageArgs(cobra.MinimumNArgs(1), "name a task: sbx stop TASK"),
		ValidArgsFunction: d.completeTasks,
	}
	return d.verb(cmd, document{schema: stopSchema, shape: output.ShapeList, columns: output.Names(stopColumns())},
		func(ctx context.Context, p *output.Printer, args []string) error { return stopTasks(ctx, d, p, args) })
}

// stopped is what a stop has reached for one task.
type stopped struct {
	task     task.Task
	word     string
	forbade  bool
	gone     bool
	after    time.Duration // to the first line
	goneIn   time.Duration // to the second
	err      error
	finished bool // it had ended before
}

func stopColumns() []output.Column[stopped] {
	return []output.Column[stopped]{
		{Name: "task", Value: func(s stopped) any { return s.word }},
		{Name: "will_not_publish", Value: func(s stopped) any { return s.forbade }},
		{Name: "gone", Value: func(s stopped) any { return s.gone }},
		{Name: "state", Value: func(s stopped) any { return textOrNil(string(s.task.State)) }},
		{Name: "forbidden_seconds", Value: func(s stopped) any { return output.Seconds(s.after) }},
		{Name: "gone_seconds", Value: func(s stopped) any { return output.Seconds(s.goneIn) }},
		{Name: "reason", Value: func(s stopped) any {
			if s.err != nil {
				return s.err.Error()
			}
			return nil
		}},
	}
}

func stopTasks(ctx context.Context, d *Deps, p *output.Printer, args []string) error {
	words, err := d.words(ctx, args)
	if len(words) == 0 && err != nil && slices.Contains(args, "-") && fault.KindOf(err) == fault.KindUsage {
		return fault.Usage("no task was given on standard input").WithHint("`sbx tasks` lists them")
	}
	if err != nil {
		return err
	}
	f, err := d.Only(ctx)
	if err != nil {
		return err
	}
	return d.WithTasks(ctx, ops.TaskParts{Fleet: f, Notice: p.Note}, func(_ store.Store, o task.Options) error {
		list, err := output.NewList(p, output.ListSpec[stopped]{
			Schema: stopSchema, Columns: stopColumns(), Line: func(s stopped) string { return s.line() },
		})
		if err != nil {
			return err
		}
		s := &stopping{o: o, say: list.Say, stopper: task.NewStopper(o)}
		for _, r := range s.all(ctx, words) {
			add := list.Add
			if r.err != nil {
				add = func(r stopped) error { return list.AddFailed(r, r.err) }
			}
			if err := add(r); err != nil {
				return list.CloseAs(err)
			}
		}
		return list.Close()
	})
}

// line is the second line of a stop; the first was said when it was true.
func (s stopped) line() string {
	switch {
	case s.gone && s.finished:
		return s.word + ": had ended before (" + string(s.task.State) + "), nothing of it is left"
	case s.gone:
		return fmt.Sprintf("%s: gone (%.1fs)", s.word, s.goneIn.Seconds())
	case s.forbade:
		return s.word + ": not seen to be gone"
	}
	return s.word + ": not stopped"
}

// stopping is one `sbx stop`.
type stopping struct {
	o       task.Options
	say     func(text string)
	stopper *task.Stopper
}

func (s *stopping) all(ctx context.Context, words []string) []stopped {
	words = eachOnce(words)
	results := make([]stopped, len(words))
	var wg sync.WaitGroup
	for i, word := range words {
		wg.Go(func() { results[i] = s.one(ctx, word) })
	}
	wg.Wait()
	return results
}

// eachOnce leaves out what was there before.
func eachOnce(words []string) []string {
	var out []string
	for _, w := range words {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// one stops one task: first the publication is made impossible, then everything made
// for it is ended and seen to be gone.
func (s *stopping) one(ctx context.Context, word string) stopped {
	began := time.Now()
	r := stopped{word: word}
	t, err := ops.FindTask(ctx, s.o.Ledger, word)
	if err != nil {
		r.err = err
		return r
	}
	r.word, r.finished = t.ID, t.State.Over()
	if r.task, err = s.stopper.Forbid(ctx, t.ID, "sbx stop of "+s.o.Owner.Who); err != nil {
		r.err = fault.Placed(err, "", "stop "+t.ID)
		if !task.TooLate(err) {
			return r
		}
	} else {
		r.forbade, r.after = true, time.Since(began)
		if !r.finished {
			s.say(fmt.Sprintf("%s: will not publish (%.1fs)", t.ID, r.after.Seconds()))
		}
	}
	now, err := s.stopper.End(ctx, r.task)
	r.task, r.goneIn = now, time.Since(began)
	if err != nil && r.err != nil {
		s.say(t.ID + ": what is left of it was not seen to be gone: " + err.Error())
		return r
	}
	if err != nil {
		r.err = fault.Placed(err, "", "stop "+t.ID)
		if errors.Is(err, task.ErrUnverified) {
			r.err = fault.New(fault.KindUnverified, "%w", err).WithHint("the next sbx goes on with it; `sbx tasks show %s` says what is left", t.ID)
		}
		return r
	}
	r.gone = true
	return r
}
