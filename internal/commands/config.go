package commands

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/tui"
	"sbx/internal/views"
)

func newConfig(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		GroupID: groupTool,
		Short:   "Explain and start configuration",
		Long: "Explain and start configuration.\n\n" +
			"Precedence: flag, environment, file, default. The file is that of --config, else the\n" +
			"user's; none of the current folder is read. Nothing has to be configured: `local` is\n" +
			"always available, and an API key in the environment enables its provider.",
		Example: "sbx config\nsbx config explain",
		Args:    unknownVerb(d),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigExplain(d), newConfigInit(d), newConfigOwn(d), newConfigPath(d), newConfigSuggest(d), newConfigImport(d))
	return cmd
}

func newConfigExplain(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "explain",
		SuggestFor: []string{"show", "get", "list", "view", "print", "get-contexts"},
		Short:      "Show every setting, its value and its origin",
		Long: "Show every setting, its value and its origin. Secrets are masked.\n\n" +
			"A variable of task launch with a bad value is marked as refused, and a warning says\n" +
			"why; only commands that launch tasks fail then.",
		Example: "sbx config explain\nsbx config explain -o json",
		Args:    d.noWords("it takes no setting as an argument; it shows all of them"),
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
		for _, text := range slices.Concat(c.Remarks, c.Notify.Unset) {
			p.Warn(text)
		}
		if err := tui.CheckKeys(c.Keys); err != nil {
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

func newConfigSuggest(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "suggest",
		SuggestFor: []string{"limits", "thresholds"},
		Short:      "Print limits of running sandboxes that fit this fleet",
		Long: "Print limits of running sandboxes that fit what was seen in the last week, as a block\n" +
			"for the configuration: the maximum times 1.5, at least the default.\n" +
			"It changes nothing.\n\n" +
			"The figures are the stored samples, which stats, diagnose, verify and cron jobs keep.\n" +
			"With less than a day of them nothing is suggested: exit 7, or 3 where another profile\n" +
			"has enough. Read the figures first: a leak raises them too.",
		Example: "sbx config suggest\nsbx config suggest --provider local -o json",
		Args:    d.noWords("--provider names the profiles"),
	}
	doc := document{schema: "sbx.config.suggest/v1", shape: output.ShapeList, columns: output.Names(views.SuggestedLimitsColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		all, err := look.SuggestLimits(ctx, d.Env)
		if err != nil {
			return err
		}
		return views.ShowSuggestedLimits(p, doc.schema, all)
	})
}

func newConfigPath(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "path",
		SuggestFor: []string{"edit", "where", "file"},
		Short:      "Show which configuration file is read",
		Long: "Show which configuration file is read, also a missing one.\n\n" +
			"It works even if the file is broken.",
		Example: "sbx config path\nsbx config path -o name",
		Args:    d.noWords("--config names a file to read instead"),
	}
	doc := document{schema: "sbx.config.path/v1", shape: output.ShapeList, columns: output.Names(views.FileColumns())}
	return d.completeVerb(cmd, doc, func(_ context.Context, p *output.Printer, _ []string) error {
		file, err := config.Path(d.Input())
		if err != nil {
			return err
		}
		files := []config.File{file}
		if file.Path == "" {
			files = nil
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
		Short: "Set which sandboxes of a profile cleanup may terminate",
		Long: "Set which sandboxes of a profile cleanup and reconcile may terminate: all, or those\n" +
			"with a label. It shows its change to the file of --config, else to the user's\n" +
			"file; comments and other settings stay.\n\n" +
			"Until then a profile, in a file or enabled by its environment variable, owns only\n" +
			"sandboxes with the label " + sandbox.LabelOwner + ", which `create` and `run` set, and an unattended\n" +
			"cleanup that only this keeps from something exits 11. Your own code can set a label in the\n" +
			"provider's metadata when it creates sandboxes; the value * matches any.\n\n" +
			labelsHelp(d.Types),
		Example: "sbx config own --provider local --all --dry-run\n" +
			"sbx config own --provider local --label team=agents --dry-run",
		Args: d.noWords("--provider names the profile"),
	}
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "all of its sandboxes are yours")
	f.StringArrayVar(&o.labels, "label", nil, "those with label `KEY=VALUE` are yours (repeatable: all must match)")
	f.BoolVar(&o.dry, "dry-run", false, "show the change and write nothing")
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
		err := fault.Usage("no profile was named")
		if c, loadErr := d.Config(); loadErr == nil && len(ops.WithoutOwner(c)) > 0 {
			return none, err.WithHint("%s", d.OwnHint(ops.WithoutOwner(c)))
		}
		return none, err.WithHint("%s", own)
	case o.all && len(o.labels) > 0:
		return none, fault.Usage("--all and --label exclude each other").WithHint("--all means every sandbox, whatever its labels")
	case !o.all && len(o.labels) == 0:
		return none, fault.Usage("neither --all nor --label was given").WithHint("%s", own)
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
	var kind string
	cmd := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a file with every setting as a comment",
		Long: "Write a file with every setting as a comment; only you can read it (0600).\n\n" +
			"Without FILE it is the file of --config, else the user's file. With --type it has a\n" +
			"profile of that provider. An existing file is not changed (exit 11); with --type the\n" +
			"lines to add are printed.",
		Example: "sbx config init",
		Args:    usageArgs(atMostOneArg("FILE"), "name one file"),
	}
	cmd.ValidArgsFunction = completeFiles
	cmd.Flags().StringVar(&kind, "type", "", "add a profile of this provider `TYPE`, such as kubernetes")
	completeFlag(cmd, "type", func() []string {
		var names []string
		for _, t := range d.Types {
			names = append(names, t.Name)
		}
		return names
	})
	doc := document{schema: "sbx.config.init/v1", shape: output.ShapeItem, columns: output.Names(views.WrittenColumns())}
	return d.completeVerb(cmd, doc, func(_ context.Context, p *output.Printer, args []string) error {
		path := d.Globals.Config
		if len(args) > 0 {
			path = args[0]
		}
		if slices.ContainsFunc(d.Types, func(t providers.Type) bool { return t.Name == path }) {
			return fault.Usage("%s is a type of provider, not a file", path).WithHint("`%s config init --type %s` writes a profile of it", d.Process.Name(), path)
		}
		path, err := config.Init(d.Input(), path, kind)
		if err != nil {
			return err
		}
		return output.ShowItem(p, output.ItemSpec[string]{
			Schema: doc.schema, Columns: views.WrittenColumns(), Line: func(path string) string { return "wrote " + path },
		}, path)
	})
}

func newConfigImport(d *Deps) *cobra.Command {
	var from []string
	var write bool
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Translate the sandbox settings of OmoiOS into a configuration",
		Long: "Translate the sandbox settings of OmoiOS into a configuration: of its YAML the keys\n" +
			"daytona.snapshot, sandbox_memory_gb, sandbox_cpu, sandbox_disk_gb, api_url and\n" +
			"api_key, of a .env file SANDBOX_SNAPSHOT, SANDBOX_IMAGE and the sizes. Later files win.\n\n" +
			"It prints the block with the origin of each value and what it did not understand, and\n" +
			"writes nothing without --write. A key is never copied: the block names the variable\n" +
			"that holds it. A profile or a setting that exists is not changed (exit 11).",
		Example: "sbx config import --from base.yaml --from production.yaml\nsbx config import --from base.yaml --from .env --write",
		Args:    d.noWords("--from names a file"),
	}
	f := cmd.Flags()
	f.StringArrayVar(&from, "from", nil, "read `FILE`, YAML or a K=V per line (repeatable: later ones win)")
	f.BoolVar(&write, "write", false, "write the block into the file of --config, else the user's")
	doc := document{schema: "sbx.config.import/v1", shape: output.ShapeItem, columns: output.Names(views.ImportColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		if len(from) == 0 {
			return fault.Usage("no file was named").WithHint("`%s config import --from FILE`", d.Process.Name())
		}
		for i, name := range from {
			from[i] = d.Path(name)
		}
		imported, err := config.Import(ctx, from)
		if err == nil && write {
			if imported, err = imported.Plan(ctx, d.Input()); err == nil {
				err = imported.Write()
			}
		}
		if err != nil {
			return err
		}
		return views.ShowImport(p, doc.schema, imported)
	})
}

// completeFiles leaves the word to the shell, which knows the files.
func completeFiles(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}
