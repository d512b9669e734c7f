package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/views"
)

const doctorSchema = "sbx.doctor/v1"

func newDoctor(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "doctor",
		GroupID: groupTool,
		Short:   "Check this tool, its configuration and its providers",
		Long: "Check this tool, its configuration and its providers.\n\n" +
			"Notes are facts about this machine. Exit 10 means that something is\n" +
			"wrong, 7 that something could not be checked. It also works when the configuration\n" +
			"is broken. With -o nagios it is a monitoring plugin: one line, exit 0, 1, 2 or 3.",
		Example: "sbx doctor\nsbx doctor --provider local\nsbx doctor -o nagios",
		Args:    d.noWords("--provider names the profiles to check"),
	}
	doc := document{schema: doctorSchema, shape: output.ShapeList, columns: output.Names(views.FindingColumns()), nagios: true}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		r, err := look.Doctor(ctx, d.Env, d.newObserver(p, nil))
		if err != nil {
			return err
		}
		return views.ShowChecks(p, doctorSchema, r.Checks, r.Trouble)
	})
}
