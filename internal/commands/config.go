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
	"sbx/internal/views"
)

func newConfig(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		GroupID: groupTool,
		Short:   "Explain, start and trust configuration",
		Long: "Explain, start and trust configuration.\n\n" +
			"A flag wins over the environment, that over the project's file, that over the\n" +
			"user's file, that over the default. Nothing has to be configured: `local` is\n" +
			"always there, and a provider switches itself on by its own environment variable.",
		Example: "sbx config\nsbx config explain",
		Args:    unknownVerb,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigExplain(d), newConfigInit(d), newConfigOwn(d), newConfigPath(d), newConfigTrust(d))
	return cmd
}

func newConfigExplain(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Show every setting, its value and where that comes from",
		Long: "Show every setting, its value and where that comes from. Secrets are masked.\n\n" +
			"A variable of task launch that cannot be used is marked as refused, and why is a\n" +
			"warning: it stops only what launches tasks.",
		Example: "sbx config explain\nsbx config explain -o json",
		Args:    usageArgs(noArgs, "it shows every setting"),
	}
	doc := document{schema: "sbx.config.explain/v1", shape: output.ShapeList, columns: output.Names(views.SettingColumns())}
	return d.completeVerb(cmd, doc, func(_ context.Context, p *output.Printer, _ []string) error {
		c, err := d.Config()
		if err != nil {
			return err
		}
		if _, err := c.State(); err != nil {
			p.Warn(err.Error() + "; " + fault.HintOf(err))
		}
		if _, err := c.Run(); err != nil {
			for _, mistake := range ops.Mistakes(err) {
				p.Warn(mistake.Error() + "; " + fault.HintOf(mistake))
			}
		}
		return views.ShowRows(p, output.ListSpec[config.Value]{Schema: doc.schema, Columns: views.SettingColumns()}, c.Values())
	})
}

func newConfigPath(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "path",
		Short: "List the files that are read, weakest first",
		Long: "List the files that are read, weakest first, also those that are not there.\n\n" +
			"It works while one of them is broken.",
		Example: "sbx config path\nsbx config path -o name",
		Args:    usageArgs(noArgs, "--config names a file to read instead"),
	}
	doc := document{schema: "sbx.config.path/v1", shape: output.ShapeList, columns: output.Names(views.FileColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		files, err := config.Paths(ctx, d.Input())
		if err != nil {
			return err
		}
		return views.ShowRows(p, output.ListSpec[config.File]{Schema: doc.schema, Columns: views.FileColumns()}, files)
	})
}

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
	doc := document{schema: "sbx.config.own/v1", shape: output.ShapeItem, columns: output.Names(views.OwnChangeColumns(false))}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		change, err := o.planChange(ctx, d)
		if err != nil {
			return err
		}
		if !o.dry {
			if err := change.Write(); err != nil {
				return err
			}
		}
		return views.ShowOwnChange(p, doc.schema, change, !o.dry)
	})
}

func (o *ownOptions) planChange(ctx context.Context, d *Deps) (config.OwnChange, error) {
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

func newConfigInit(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a file with every setting as a comment",
		Long: "Write a file with every setting as a comment, for you alone (0600).\n\n" +
			"Without FILE it is the one of --config, else the user's file. A file that is\n" +
			"there already stays as it is (exit 11).",
		Example: "sbx config init",
		Args:    usageArgs(cobra.MaximumNArgs(1), "name one file"),
	}
	cmd.ValidArgsFunction = completeFiles
	doc := document{schema: "sbx.config.init/v1", shape: output.ShapeItem, columns: output.Names(views.WrittenColumns())}
	return d.completeVerb(cmd, doc, func(_ context.Context, p *output.Printer, args []string) error {
		path := d.Globals.Config
		if len(args) > 0 {
			path = args[0]
		}
		path, err := config.Init(d.Input(), path)
		if err != nil {
			return err
		}
		return output.ShowItem(p, output.ItemSpec[string]{
			Schema: doc.schema, Columns: views.WrittenColumns(), Line: func(path string) string { return "wrote " + path },
		}, path)
	})
}

func newConfigTrust(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trust [FILE]",
		Short: "Let a project's file do more than narrow",
		Long: "Let a project's file, " + config.ProjectFile + ", do more than narrow: redirect, run or widen.\n\n" +
			"The trust is in its present content: after a change it is asked for again.\n" +
			"Without FILE it is the nearest one from here upward. Read it first.",
		Example: "sbx config trust",
		Args:    usageArgs(cobra.MaximumNArgs(1), "name one file"),
	}
	cmd.ValidArgsFunction = completeFiles
	doc := document{schema: "sbx.config.trust/v1", shape: output.ShapeItem, columns: output.Names(views.GrantColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		grant, err := config.Trust(ctx, d.Input(), strings.Join(args, ""))
		if err != nil {
			return err
		}
		return output.ShowItem(p, output.ItemSpec[config.Grant]{Schema: doc.schema, Columns: views.GrantColumns(), Human: views.GrantPage}, grant)
	})
}

// completeFiles leaves the word to the shell, which knows the files.
func completeFiles(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}
