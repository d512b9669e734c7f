package commands

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/fleet"
	"sbx/internal/ops"
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
		Long: "List sandboxes of all configured providers, as they arrive.\n\n" +
			"Whether a running sandbox is stuck cannot be told from a list: --look asks those\n" +
			"that are old enough themselves (output, events, processor), as a cleanup does, and\n" +
			"--stuck looks by itself. What was not judged is counted: `unjudged` in json.\n\n" +
			"A provider that cannot be listed is an error beside the others' rows (exit 3), never an empty list.",
		Example: "sbx ls\nsbx ls --stuck\nsbx ls --state running --older-than 10m\nsbx ls -o json",
		Args:    usageArgs(noArgs, "`sbx inspect REF` shows one sandbox"),
	}
	o.selectors.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.look, "look", false, "look at those that may be stuck whether they work; --stuck does by itself")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "list again every 2 s until interrupted")
	o.selectors.registerCompletions(cmd)
	return d.completeVerb(cmd, document{schema: lsSchema, shape: output.ShapeList, columns: output.Names(views.SandboxColumns())},
		func(ctx context.Context, p *output.Printer, _ []string) error { return runLs(ctx, d, p, o) })
}

const lsSchema = "sbx.ls/v1"

// watchEvery is the pace of --watch.
const watchEvery = 2 * time.Second

func runLs(ctx context.Context, d *Deps, p *output.Printer, o lsOptions) error {
	s, err := selector.Compile(o.selectors.selectorOptions())
	if err != nil {
		return err
	}
	lister, err := ops.NewLister(ctx, d.Env, ops.ListRequest{Selector: s, Look: o.look})
	if err != nil {
		return err
	}
	names := lister.Profiles()
	empty := views.EmptyListHint(d.Process.Name(), names, !s.Empty(), len(names) == 1 && d.ProfileFacts(names[0]).HostProcesses)
	look := func(ctx context.Context) error { return lsOnce(ctx, d, p, lister, empty) }
	if !o.watch {
		return look(ctx)
	}
	return repeatLook(ctx, p, watchEvery, look)
}

// lsOnce prints one listing as it arrives. What cannot be written any more ends it.
func lsOnce(ctx context.Context, d *Deps, p *output.Printer, lister *ops.Lister, empty string) error {
	list, err := output.NewList(p, output.ListSpec[views.SandboxRow]{Schema: lsSchema, Columns: views.SandboxColumns(), Empty: empty})
	if err != nil {
		return err
	}
	reading, watch, broken := d.observeWhileWritable(ctx, p, func(item any) error {
		switch i := item.(type) {
		case fleet.Judged:
			return list.Add(views.SandboxRowOf(i, d.Now()))
		case error:
			list.Fail(i)
		}
		return nil
	})
	r := lister.List(reading, watch)
	if err := broken(); err != nil {
		return err
	}
	return views.FinishSandboxList(list, r, d.Process.Name())
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

func (s *selectorFlags) addFlags(f *pflag.FlagSet) {
	s.addSelectingFlags(f)
	f.StringVar(&s.sort, "sort", "", "by `KEY`, -KEY for falling order")
	f.IntVar(&s.limit, "limit", 0, "at most `N`")
	f.BoolVar(&s.all, "all", false, "also local ones that ended more than an hour ago")
}

// addSelectingFlags adds the flags that choose; a bulk ending has no others: it never ends
// the first N.
func (s *selectorFlags) addSelectingFlags(f *pflag.FlagSet) {
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

// selectorOptions distinguishes what was typed from what was left out: an empty text is a
// mistake (an unset shell variable), not "no limit".
func (s *selectorFlags) selectorOptions() selector.Options {
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

func (s *selectorFlags) registerCompletions(cmd *cobra.Command) {
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
