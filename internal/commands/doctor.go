package commands

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/spawn"
	"sbx/internal/views"
)

const doctorSchema = "sbx.doctor/v1"

func newDoctor(d *Deps) *cobra.Command {
	var spawned string
	cmd := &cobra.Command{
		Use:     "doctor",
		GroupID: groupTool,
		Short:   "Check this tool, its configuration and its providers",
		Long: "Check this tool, its configuration and its providers.\n\n" +
			"Notes are facts about this machine. Exit 10 means that something is\n" +
			"wrong, 7 that something could not be checked. It also works when the configuration\n" +
			"is broken. With -o nagios it is a monitoring plugin: one line, exit 0, 1, 2 or 3.\n\n" +
			"--spawn also plays the life of one small sandbox at that profile: it is created, runs\n" +
			"a command, its output is read, it is ended and verified to be gone. Each step has a\n" +
			"row. It is ended also after a failure, a time limit and Ctrl-C.",
		Example: "sbx doctor\nsbx doctor --provider local\nsbx doctor --spawn local\nsbx doctor -o nagios",
		Args:    d.noWords("--provider names the profiles to check"),
	}
	cmd.Flags().StringVar(&spawned, "spawn", "", "also test `PROFILE` with one sandbox that is created and ended")
	completeFlag(cmd, "spawn", d.ConfiguredNames)
	doc := document{schema: doctorSchema, shape: output.ShapeList, columns: output.Names(views.FindingColumns()), nagios: true}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		return runDoctor(ctx, d, p, spawned)
	})
}

func runDoctor(ctx context.Context, d *Deps, p *output.Printer, spawned string) error {
	watch := d.newObserver(p, nil)
	test, err := prepareSpawn(ctx, d, spawned)
	if err != nil {
		return err
	}
	r, err := look.Doctor(ctx, d.Env, watch)
	if err != nil {
		return err
	}
	if test != nil && ctx.Err() == nil {
		r.Checks = append(r.Checks, test.Run(ctx, watch)...)
		r.Trouble = context.Cause(ctx)
	}
	return views.ShowChecks(p, doctorSchema, r.Checks, r.Trouble)
}

// prepareSpawn makes the profile of --spawn the one that this run is about; nil without it.
func prepareSpawn(ctx context.Context, d *Deps, profile string) (*spawn.Test, error) {
	if profile == "" {
		return nil, nil //nolint:nilnil // no test is asked for
	}
	if named := d.Globals.Providers; len(named) > 0 && !slices.Equal(named, []string{profile}) {
		return nil, fault.Usage(
			"--spawn %s and --provider %s exclude each other", profile, strings.Join(named, ","),
		).WithHint("leave --provider out: --spawn checks its profile")
	}
	d.Globals.Providers = []string{profile}
	test, err := spawn.Prepare(ctx, d.Env, profile, userName(d.Process.Lookup))
	if err != nil && fault.KindOf(err) == fault.KindUsage {
		if text, found := strings.CutPrefix(err.Error(), "flag --provider: "); found {
			return nil, fault.Usage("--spawn: %s", text).WithHint("%s", fault.HintOf(err))
		}
	}
	return test, err
}
