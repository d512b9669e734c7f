package commands

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/config"
	"sbx/internal/output"
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
	doc := document{schema: "sbx.config.init/v1", shape: output.ShapeItem, columns: output.Names(writtenColumns())}
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
			Schema: doc.schema, Columns: writtenColumns(), Line: func(path string) string { return "wrote " + path },
		}, path)
	})
}

func writtenColumns() []output.Column[string] {
	return []output.Column[string]{{Name: "path", Value: func(path string) any { return path }}}
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
	doc := document{schema: "sbx.config.trust/v1", shape: output.ShapeItem, columns: output.Names(grantColumns())}
	return d.verb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		grant, err := config.Trust(ctx, d.Input(), strings.Join(args, ""))
		if err != nil {
			return err
		}
		return output.ShowItem(p, output.ItemSpec[config.Grant]{Schema: doc.schema, Columns: grantColumns(), Human: grantPage}, grant)
	})
}

func grantColumns() []output.Column[config.Grant] {
	return []output.Column[config.Grant]{
		{Name: "path", Value: func(g config.Grant) any { return g.Path }},
		{Name: "sha256", Value: func(g config.Grant) any { return g.SHA256 }},
		{Name: "allows", Value: func(g config.Grant) any { return g.Allows }},
	}
}

func grantPage(s *output.Sheet, g config.Grant) {
	s.Text("trusted " + g.Path + "\n")
	if len(g.Allows) == 0 {
		s.Text("It only narrows, which needs no trust.\n")
		return
	}
	s.Section("It may now")
	for _, line := range g.Allows {
		s.Text(line + "\n")
	}
}

// completeFiles leaves the word to the shell, which knows the files.
func completeFiles(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}
