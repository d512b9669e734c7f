package commands

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/views"
)

func newVersion(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		GroupID: groupTool,
		Short:   "Print the version",
		Long: "Print the version, the commit it was built from, and what for.\n\n" +
			"It reads no configuration and asks no provider.",
		Example: "sbx version\nsbx version -o json",
		Args:    usageArgs(noArgs, "it takes flags only"),
	}
	doc := document{schema: "sbx.version/v1", shape: output.ShapeItem, columns: output.Names(views.VersionColumns())}
	return d.completeVerb(cmd, doc, func(_ context.Context, p *output.Printer, _ []string) error {
		return output.ShowItem(p, output.ItemSpec[ops.Version]{
			Schema: "sbx.version/v1", Columns: views.VersionColumns(),
			Line: func(v ops.Version) string {
				return fmt.Sprintf("%s %s (%s, %s, %s/%s)", d.Process.Name(), v.Version, v.Commit, v.Go, v.OS, v.Arch)
			},
		}, d.Version)
	})
}
