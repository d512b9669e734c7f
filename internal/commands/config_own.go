package commands

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// ownOptions are the flags of config own, as typed.
type ownOptions struct {
	all, dry bool
	labels   []string
}

func newConfigOwn(d *Deps) *cobra.Command {
	var o ownOptions
	cmd := &cobra.Command{
		Use:   "own",
		Short: "Write down which sandboxes of a profile cleanup may end",
		Long: "Write down which sandboxes of a profile cleanup and reconcile may end: all, or those\n" +
			"that carry a label. It shows what it changes in the file of --config, else the user's\n" +
			"file; comments and other settings stay.\n\n" +
			"A profile that its environment variable alone has switched on owns only what has the\n" +
			"label " + sandbox.LabelOwner + ", which `create` and `run` put on what they make. Whatever made\n" +
			"the others can put a label into the provider's metadata; a value of * takes any.\n\n" +
			labelsHelp(d.Types),
		Example: "sbx config own --provider local --all --dry-run\n" +
			"sbx config own --provider local --label team=agents --dry-run",
		Args: usageArgs(noArgs, "--provider names the profile"),
	}
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "all of its sandboxes are yours")
	f.StringArrayVar(&o.labels, "label", nil, "those with label `KEY=VALUE` are yours (repeatable: with all of them)")
	f.BoolVar(&o.dry, "dry-run", false, "show the change, and write nothing")
	doc := document{schema: "sbx.config.own/v1", shape: output.ShapeItem, columns: output.Names(ownColumns(o))}
	return d.verb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		change, err := o.plan(ctx, d)
		if err != nil {
			return err
		}
		if !o.dry {
			if err := change.Write(); err != nil {
				return err
			}
		}
		return output.ShowItem(p, output.ItemSpec[config.OwnChange]{
			Schema: doc.schema, Columns: ownColumns(o), Human: func(s *output.Sheet, c config.OwnChange) { o.page(s, c) },
		}, change)
	})
}

func (o *ownOptions) plan(ctx context.Context, d *Deps) (config.OwnChange, error) {
	var none config.OwnChange
	own := "`" + d.Process.Name() + " config own --provider PROFILE --all`, or --label KEY=VALUE"
	switch {
	case len(d.Globals.Providers) == 0:
		err := fault.Usage("whose sandboxes? no profile is named")
		if c, loadErr := d.Config(); loadErr == nil && len(ops.Undecided(c)) > 0 {
			return none, err.WithHint("%s", d.OwnHint(ops.Undecided(c)))
		}
		return none, err.WithHint("%s", own)
	case o.all && len(o.labels) > 0:
		return none, fault.Usage("--all and --label exclude each other").WithHint("--all is every sandbox, whatever it carries")
	case !o.all && len(o.labels) == 0:
		return none, fault.Usage("which of its sandboxes are yours?").WithHint("%s", own)
	}
	owned := config.Owned{All: true}
	if !o.all {
		labels, err := readLabels(o.labels)
		if err == nil {
			owned, err = config.OwnedLabels(labels)
		}
		if err != nil {
			return none, err
		}
	}
	return config.Own(ctx, d.Input(), d.Globals.Providers, owned)
}

func (o *ownOptions) page(s *output.Sheet, c config.OwnChange) {
	switch {
	case len(c.Diff) == 0:
		s.Text(c.Path + " says so already: of " + strings.Join(c.Profiles, ", ") + " yours are: " + c.Owned.String() + "\n")
		return
	case o.dry:
		s.Text("Nothing was written; this would change in " + c.Path + ":\n")
	default:
		s.Text("wrote " + c.Path + ":\n")
	}
	for _, line := range c.Diff {
		s.Text(line + "\n")
	}
}

func ownColumns(o ownOptions) []output.Column[config.OwnChange] {
	type row = config.OwnChange
	return []output.Column[row]{
		{Name: "path", Value: func(c row) any { return c.Path }},
		{Name: "providers", Value: func(c row) any { return c.Profiles }},
		{Name: "owned", Value: func(c row) any { return c.Owned.String() }},
		{Name: "written", Value: func(c row) any { return !o.dry && len(c.Diff) > 0 }},
		{Name: "diff", Value: func(c row) any { return c.Diff }},
	}
}
