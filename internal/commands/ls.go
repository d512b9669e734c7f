package commands

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/views"
)

type lsOptions struct {
	selectors selectorFlags
	look      bool
	watch     bool
}

func newLs(d *Deps) *cobra.Command {
	var o lsOptions
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		GroupID: groupLook,
		Short:   "List sandboxes of all configured providers",
		Long: "List sandboxes of all configured providers, as they arrive.\n\n" +
			"Whether a running sandbox is stuck cannot be told from a list: --look asks those\n" +
			"that are old enough themselves (output, events, processor), as a cleanup does, and\n" +
			"--stuck looks by itself. What was not judged is counted: `unjudged` in json.\n\n" +
			"A provider that cannot be listed is an error beside the others' rows (exit 3), never an empty list.",
		Example: "sbx ls\nsbx ls --stuck\nsbx ls --state running --older-than 10m\nsbx ls -o json",
		Args:    usageArgs(noArgs, "`sbx inspect REF` shows one sandbox"),
	}
	o.selectors.add(cmd.Flags())
	cmd.Flags().BoolVar(&o.look, "look", false, "look at those that may be stuck whether they work; --stuck does by itself")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "list again every 2 s until interrupted")
	o.selectors.complete(cmd)
	return d.verb(cmd, document{schema: "sbx.ls/v1", shape: output.ShapeList, columns: output.Names(views.SandboxColumns())},
		func(ctx context.Context, p *output.Printer, _ []string) error { return ls(ctx, d, p, o) })
}

// watchEvery is the pace of --watch.
const watchEvery = 2 * time.Second

func ls(ctx context.Context, d *Deps, p *output.Printer, o lsOptions) error {
	s, err := selector.Compile(o.selectors.options())
	if err != nil {
		return err
	}
	f, err := d.Fleet(ctx)
	if err != nil {
		return err
	}
	look := o.look || s.Stuck
	if !o.watch {
		return lsOnce(ctx, d, p, f, s, look)
	}
	return repeat(ctx, p, watchEvery, func(ctx context.Context) error { return lsOnce(ctx, d, p, f, s, look) })
}

// lsOnce prints one listing. Rows go out as they arrive, unless they have to be
// looked at, sorted or cut first.
func lsOnce(ctx context.Context, d *Deps, p *output.Printer, f *fleet.Fleet, s selector.Selector, look bool) error {
	list, err := output.NewList(p, output.ListSpec[views.SandboxRow]{
		Schema: "sbx.ls/v1", Columns: views.SandboxColumns(), Empty: d.emptyNote(f, s),
	})
	if err != nil {
		return err
	}
	progress := p.Progress("listing")
	defer progress.Done()
	l := &lister{d: d, list: list, selector: s}
	streaming := s.Sort == selector.Order{} && !look
	var held []sandbox.Sandbox
	limit := 0
	if streaming {
		limit = s.Limit // it needs no more pages than it shows
	}
	full := false
	for sb, err := range f.List(ctx, providers.Query{All: s.All, States: s.States, Labels: s.ExactLabels(), Limit: limit}) {
		switch {
		case err != nil:
			list.Fail(err)
		case !streaming:
			held = append(held, sb)
		default:
			if full, err = l.stream(d.row(sb)); err != nil {
				return err
			}
		}
		if full {
			list.Truncated()
			break
		}
	}
	if look {
		progress.Update("looking at them")
	}
	if err := l.apply(ctx, f, held, look); err != nil {
		return err
	}
	progress.Done()
	if full {
		list.Set("unjudged", nil) // the rest was not counted
		return list.Close()
	}
	list.Set("unjudged", l.census.Unjudged)
	list.Remark(l.census.Remark(d.Process.Name() + " ls --look"))
	return list.Close()
}

// lister is one listing on its way.
type lister struct {
	d        *Deps
	list     *output.List[views.SandboxRow]
	selector selector.Selector
	census   ops.Census // of everything that the other selectors take
	shown    int        // rows that were printed as they arrived
}

// facts judge by verdicts that are there already.
func (l *lister) facts(of func(sandbox.Sandbox) views.SandboxRow) selector.Facts {
	return selector.Facts{Now: l.d.Now(), HidesEnded: l.d.HidesEnded, Stuck: func(s sandbox.Sandbox) (sandbox.Verdict, string) {
		v := of(s).Verdict
		return v.Stuck, v.Reason
	}}
}

// unstuck is the selector without the stuck rule: what it takes is what is judged.
func (l *lister) unstuck() selector.Selector {
	s := l.selector
	s.Stuck = false
	return s
}

// stream prints a row at once where it is chosen. full = as many are shown as were asked
// for, and this would be one more.
func (l *lister) stream(r views.SandboxRow) (full bool, err error) {
	facts := l.facts(func(sandbox.Sandbox) views.SandboxRow { return r })
	if l.unstuck().Judge(r.Sandbox, facts).Verdict != sandbox.True {
		return false, nil
	}
	l.census.Add(r.Verdict)
	switch {
	case l.selector.Judge(r.Sandbox, facts).Verdict != sandbox.True:
		return false, nil
	case l.selector.Limit > 0 && l.shown == l.selector.Limit:
		return true, nil
	}
	l.shown++
	return false, l.list.Add(r)
}

// apply judges what was held back, and prints what is chosen of it.
func (l *lister) apply(ctx context.Context, f *fleet.Fleet, held []sandbox.Sandbox, look bool) error {
	rows := map[sandbox.Ref]views.SandboxRow{}
	facts := l.facts(func(s sandbox.Sandbox) views.SandboxRow { return rows[s.Ref()] })
	held = slices.DeleteFunc(held, func(s sandbox.Sandbox) bool { return l.unstuck().Judge(s, facts).Verdict != sandbox.True })
	judged := f.Judge(ctx, held, l.d.Judging(look))
	for i, j := range judged {
		rows[j.Sandbox.Ref()], held[i] = l.d.judgedRow(j), j.Sandbox
		l.census.Add(j.Verdict)
	}
	for _, err := range ops.FailedLooks(judged) {
		l.list.Fail(err)
	}
	chosen := l.selector.Apply(held, facts)
	for _, j := range chosen.Selected {
		if err := l.list.Add(rows[j.Sandbox.Ref()]); err != nil {
			return err
		}
	}
	if chosen.Truncated {
		l.list.Truncated()
	}
	return nil
}

// emptyNote teaches what could be done when there is nothing to show.
func (d *Deps) emptyNote(f *fleet.Fleet, s selector.Selector) string {
	names, sbx := f.Names(), d.Process.Name()
	switch {
	case !s.Empty():
		return "no sandbox matches; `" + sbx + " ls` without selectors shows what there is"
	case len(names) == 1 && d.ProfileFacts(names[0]).HostProcesses:
		return "no sandboxes; only `" + names[0] + "` is configured: start one with `" + sbx + " create -- COMMAND`, or stage an incident with `" + sbx + " drill`"
	}
	return "no sandboxes; `" + sbx + " ls --all` shows what ended more than an hour ago"
}

// selectorFlags are the selectors of ls, as typed.
type selectorFlags struct {
	flags                                                      *pflag.FlagSet
	states, labels                                             []string
	olderThan, youngerThan, name, task, agentType, owner, sort string
	before, after                                              string
	limit                                                      int
	stuck, all                                                 bool
}

func (s *selectorFlags) add(f *pflag.FlagSet) {
	s.choose(f)
	f.StringVar(&s.sort, "sort", "", "by `KEY`, -KEY for falling order")
	f.IntVar(&s.limit, "limit", 0, "at most `N`")
	f.BoolVar(&s.all, "all", false, "also local ones that ended more than an hour ago")
}

// choose adds the flags that choose; a bulk ending has no others: it never ends
// the first N.
func (s *selectorFlags) choose(f *pflag.FlagSet) {
	s.flags = f
	f.StringSliceVar(&s.states, "state", nil, "only in this `STATE` (repeatable)")
	f.StringVar(&s.olderThan, "older-than", "", "older than `AGE`: 90s, 10m, 2h, 3d")
	f.StringVar(&s.youngerThan, "younger-than", "", "younger than `AGE`")
	f.StringVar(&s.before, "before", "", "there before `TIME`: 2026-11-20T12:00:00Z")
	f.StringVar(&s.after, "after", "", "there only after `TIME`")
	f.StringArrayVar(&s.labels, "label", nil, "with label `K=V`, or K with any value (repeatable)")
	f.StringVar(&s.name, "name", "", "whose name matches `GLOB`")
	f.StringVar(&s.task, "task", "", "of task `ID`")
	f.StringVar(&s.agentType, "agent-type", "", "of agent type `TYPE`")
	f.StringVar(&s.owner, "owner", "", "whose owner is `NAME`, as its labels say")
	f.BoolVar(&s.stuck, "stuck", false, "only stuck ones: running for more than 10m without a sign of life")
}

// options tells what was typed from what was left out: an empty text is a
// mistake (an unset shell variable), not "no limit".
func (s *selectorFlags) options() selector.Options {
	text := func(flag string, value *string) *string {
		if s.flags.Changed(flag) {
			return value
		}
		return nil
	}
	o := selector.Options{
		States: s.states, Labels: s.labels, Stuck: s.stuck, All: s.all,
		OlderThan: text("older-than", &s.olderThan), YoungerThan: text("younger-than", &s.youngerThan),
		Before: text("before", &s.before), After: text("after", &s.after),
		Name: text("name", &s.name), Task: text("task", &s.task), AgentType: text("agent-type", &s.agentType), Owner: text("owner", &s.owner), Sort: text("sort", &s.sort),
	}
	if s.flags.Changed("limit") {
		o.Limit = &s.limit
	}
	return o
}

func (s *selectorFlags) complete(cmd *cobra.Command) {
	complete(cmd, "state", func() []string {
		var words []string
		for _, st := range sandbox.States() {
			words = append(words, string(st))
		}
		return words
	})
	if cmd.Flags().Lookup("sort") != nil {
		complete(cmd, "sort", selector.SortKeys)
	}
}
