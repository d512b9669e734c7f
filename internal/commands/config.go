package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
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
	return d.verb(cmd, doc, func(_ context.Context, p *output.Printer, _ []string) error {
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
	return d.verb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		files, err := config.Paths(ctx, d.Input())
		if err != nil {
			return err
		}
		return views.ShowRows(p, output.ListSpec[config.File]{Schema: doc.schema, Columns: views.FileColumns()}, files)
	})
}
