package commands

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/fleet"
	"sbx/internal/ops/look"
	"sbx/internal/output"
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
		Long: "List sandboxes of all configured providers, as they arrive; on a terminal running\n" +
			"ones first, the newest first. Ended ones are listed with --all, or by their --state.\n\n" +
			"A list does not tell whether a running sandbox is stuck: --look queries those that\n" +
			"are old enough (output, events, processor), as cleanup does; --stuck implies it.\n" +
			"Sandboxes that were not judged are counted: `unjudged` in json.\n\n" +
			"--limit N lists the newest N of all providers, for which every row is read.\n\n" +
			"--all also names each end that was requested and not acknowledged: `unconfirmed` in\n" +
			"json. Such a sandbox may still run where its provider lists it no more.\n\n" +
			"A sandbox that the last complete listing had, that is not listed now and has no end on\n" +
			"record is read by its id, at most 20 at once: `unlisted` in json. If it still exists the\n" +
			"listing is incomplete (exit 3).\n\n" +
			"If one provider cannot be listed you still see the others, and the error (exit 3).",
		Example: "sbx ls\nsbx ls --stuck\nsbx ls --state running --older-than 10m\nsbx ls -o json",
		Args:    d.noWords("`sbx inspect REF` shows one sandbox"),
	}
	o.selectors.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.look, "look", false, "query those that may be stuck; --stuck implies it")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "list again every 2 s until interrupted")
	o.selectors.registerCompletions(cmd)
	return d.completeVerb(cmd, document{schema: lsSchema, shape: output.ShapeList, columns: output.Names(views.SandboxColumns())},
		func(ctx context.Context, p *output.Printer, _ []string) error { return runLs(ctx, d, p, o) })
}

const lsSchema = "sbx.ls/v1"

// watchEvery is the pace of --watch.
const watchEvery = 2 * time.Second

func runLs(ctx context.Context, d *Deps, p *output.Printer, o lsOptions) error {
	s, err := selector.Compile(o.selectors.selectorOptions(d.Now()))
	if err != nil {
		return err
	}
	lister, err := look.NewLister(ctx, d.Env, look.ListRequest{Selector: s, Look: o.look, Live: o.watch})
	if err != nil {
		return err
	}
	names := lister.Profiles()
	empty := views.EmptyListHint(d.Process.Name(), names, !s.Empty(), len(names) == 1 && d.ProfileFacts(names[0]).HostProcesses)
	spec := output.ListSpec[views.SandboxRow]{Schema: lsSchema, Columns: views.SandboxColumns(), Screen: views.SandboxScreen(s.Stuck), Empty: empty}
	if s.Sort == (selector.Order{}) {
		spec.Order = views.RowOrder
	}
	look := func(ctx context.Context, frame watchFrame) error { return lsOnce(ctx, d, p, lister, spec, frame) }
	if !o.watch {
		return look(ctx, nil)
	}
	return repeatLook(ctx, p, watchEvery, look)
}

// lsOnce prints one listing as it arrives. What cannot be written any more ends it.
func lsOnce(ctx context.Context, d *Deps, p *output.Printer, lister *look.Lister, spec output.ListSpec[views.SandboxRow], frame watchFrame) error {
	list, err := output.NewList(p, spec)
	if err != nil {
		return err
	}
	var row views.SandboxRow
	reading, watch, broken := d.observeWhileWritable(ctx, p, func(item any) error {
		switch i := item.(type) {
		case *fleet.Judged:
			if frame != nil {
				frame[i.Sandbox.Ref()] = watchWord(*i)
			}
			row = views.SandboxRowOf(*i, d.Now())
			return list.AddReused(&row)
		case error:
			list.Fail(i)
		}
		return nil
	})
	r := lister.List(reading, watch)
	if err := broken(); err != nil {
		return err
	}
	return views.FinishSandboxList(list, r, d.Process.Name(), d.Now())
}

// watchWord is what a watch compares of a sandbox.
func watchWord(j fleet.Judged) string {
	if j.Verdict.Stuck == sandbox.True {
		return "stuck"
	}
	return string(j.Sandbox.State)
}

// selectorFlags are the selectors of ls, as typed.
type selectorFlags struct {
	flags                                                      *pflag.FlagSet
	states, labels                                             []string
	olderThan, youngerThan, name, task, agentType, owner, sort string
	before, after, template, where                             string
	exitCode                                                   int
	limit                                                      int
	stuck, all                                                 bool
}

func (s *selectorFlags) addFlags(f *pflag.FlagSet) {
	s.addSelectingFlags(f)
	f.StringVar(&s.sort, "sort", "", "sort by `KEY`, descending with -KEY")
	f.IntVar(&s.limit, "limit", 0, "at most `N`")
	f.BoolVar(&s.all, "all", false, "also ended ones")
}

// addSelectingFlags adds the flags that choose; a bulk ending has no others: it never ends
// the first N.
func (s *selectorFlags) addSelectingFlags(f *pflag.FlagSet) {
	s.flags = f
	f.StringSliceVar(&s.states, "state", nil, "only in this `STATE` (repeatable)")
	f.StringVar(&s.olderThan, "older-than", "", "older than `AGE`: 90s, 10m, 1.5h, 3d")
	f.StringVar(&s.youngerThan, "younger-than", "", "younger than `AGE`")
	f.StringVar(&s.before, "before", "", "created before `TIME`: 2026-11-20, 12:00 (UTC), yesterday, 2h (ago)")
	f.StringVar(&s.after, "after", "", "created after `TIME`")
	f.StringArrayVar(&s.labels, "label", nil, "with label `K=V`, or K with any value (repeatable)")
	f.StringVar(&s.name, "name", "", "whose name matches `GLOB`")
	f.StringVar(&s.task, "task", "", "of task `ID`")
	f.StringVar(&s.agentType, "agent-type", "", "of agent type `TYPE`")
	f.StringVar(&s.owner, "owner", "", "whose labels name the owner `NAME`")
	f.StringVar(&s.template, "template", "", "created from template `NAME`")
	f.IntVar(&s.exitCode, "exit-code", 0, "whose program ended with exit code `N`")
	f.StringVar(&s.where, "where", "", "for which `CONDITION` holds: 'cpu_percent < 1% and age_seconds > 1h'")
	f.BoolVar(&s.stuck, "stuck", false, "only stuck ones: running for more than 10m and inactive")
	for _, name := range []string{"older-than", "younger-than", "before", "after", "name", "task", "agent-type", "owner", "template", "where"} {
		flag := f.Lookup(name)
		flag.Value = &onceValue{Value: flag.Value}
	}
}

var errGivenTwice = errors.New("it is given twice, and only one can be matched; --where joins conditions: '(A) and (B)'")

// onceValue is the value of a selector that is given once: a sandbox has to match all selectors, and
// of two values the first would be lost without a word.
type onceValue struct {
	pflag.Value

	given *string
}

// Set implements pflag.Value.
func (v *onceValue) Set(text string) error {
	if v.given != nil && *v.given != text { // the same again says nothing new
		return errGivenTwice
	}
	v.given = &text
	return v.Value.Set(text)
}

// selectorOptions distinguishes what was typed from what was left out: an empty text is a
// mistake (an unset shell variable), not "no limit".
func (s *selectorFlags) selectorOptions(now time.Time) selector.Options {
	text := func(flag string, value *string) *string {
		if s.flags.Changed(flag) {
			return value
		}
		return nil
	}
	o := selector.Options{
		Now: now, States: s.states, Labels: s.labels, Stuck: s.stuck, All: s.all,
		OlderThan: text("older-than", &s.olderThan), YoungerThan: text("younger-than", &s.youngerThan),
		Before: text("before", &s.before), After: text("after", &s.after),
		Name: text("name", &s.name), Task: text("task", &s.task), AgentType: text("agent-type", &s.agentType), Owner: text("owner", &s.owner),
		Template: text("template", &s.template), Where: text("where", &s.where), Sort: text("sort", &s.sort),
	}
	if s.flags.Changed("limit") {
		o.Limit = &s.limit
	}
	if s.flags.Changed("exit-code") {
		o.ExitCode = &s.exitCode
	}
	return o
}

func (s *selectorFlags) registerCompletions(cmd *cobra.Command) {
	completeFlagFunc(cmd, "where", completeCondition)
	completeFlag(cmd, "state", func() []string {
		var words []string
		for _, st := range sandbox.States() {
			words = append(words, string(st))
		}
		return words
	})
	if cmd.Flags().Lookup("sort") != nil {
		completeFlag(cmd, "sort", selector.SortKeys)
	}
}
