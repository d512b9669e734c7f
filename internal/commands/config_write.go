package commands

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/config"
	"sbx/internal/output"
	"sbx/internal/views"
)

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
	return d.verb(cmd, doc, func(_ context.Context, p *output.Printer, args []string) error {
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
	return d.verb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
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
