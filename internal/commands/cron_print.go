package commands

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/metrics"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

type cronPrintOptions struct {
	systemd   bool
	checkOnly bool
	emergency bool
	layers    []string
	lock      string
	ping      string
	textfile  string
	envFile   string
}

const cronPrintSchema = "sbx.cron.print/v1"

func newCronPrint(d *Deps) *cobra.Command {
	var o cronPrintOptions
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print crontab lines, or systemd units, for the cleaning layers",
		Long: "Print crontab lines, or systemd units, for the cleaning layers.\n\n" +
			"They do what this command line would do here: the same profiles, configuration and\n" +
			"state, by absolute paths, also in an empty environment. What the configuration reads\n" +
			"from the environment is named and read from a file (--env-file); no secret is printed.\n" +
			"{layer} in --ping and --textfile stands for the name of the layer. The minutes follow\n" +
			"from the name of the host.\n\n" +
			"Comments say what the lines would leave: profiles of which nobody has said whose the\n" +
			"sandboxes are, and those that tell no quota and have no max_sandboxes, which layer\n" +
			"usage cannot watch. A provider's own emergency cleanup above 80% is printed as a\n" +
			"comment, since it ends also what works; --emergency switches it on.",
		Example: "sbx cron print\nsbx cron print --systemd --textfile /var/lib/node_exporter/sbx-{layer}.prom\n" +
			"sbx cron print --provider prod --check-only -o json",
		Args: usageArgs(noArgs, "`--layer NAME` chooses what is printed"),
	}
	f := cmd.Flags()
	f.BoolVar(&o.systemd, "systemd", false, "services and timers instead of crontab lines")
	f.BoolVar(&o.checkOnly, "check-only", false, "reconcile only looks and changes nothing")
	f.BoolVar(&o.emergency, "emergency", false, "have layer usage also start the providers' own emergency cleanup, which ends what works")
	layerFlag(cmd, &o.layers, "only this `LAYER` (repeatable)")
	f.StringVar(&o.lock, "lock-timeout", "2m", "let a run wait this `DURATION` for another one")
	f.StringVar(&o.ping, "ping", "", "have cleanup ping this `URL`; notify.ping_env keeps it out of the crontab")
	f.StringVar(&o.textfile, "textfile", "", "have cleanup write its metrics to this `FILE` (.prom)")
	f.StringVar(&o.envFile, "env-file", "", "read secrets from this `FILE`; cron.env beside the user's configuration unless given")
	return d.verb(cmd, document{schema: cronPrintSchema, shape: output.ShapeList, columns: output.Names(views.CronColumns(cron.Plan{}, false))},
		func(_ context.Context, p *output.Printer, _ []string) error { return printCron(d, p, o) })
}

func printCron(d *Deps, p *output.Printer, o cronPrintOptions) error {
	plan, err := d.cronPlan(o)
	if err != nil {
		return err
	}
	if err := plan.Check(); err != nil {
		return fault.Usage("%w", err).WithHint("choose shorter or plainer names, fewer profiles, or systemd units")
	}
	if p.Format.Name() == output.Table && len(p.Columns) == 0 {
		text := plan.Crontab()
		if o.systemd {
			text = plan.Systemd()
		}
		_, err := io.WriteString(p.Stdout(), text)
		return err
	}
	if remarks := plan.Remarks(); len(remarks) > 0 {
		p.Warn(strings.Join(remarks, " "))
	}
	return views.ShowRows(p, output.ListSpec[cron.Entry]{Schema: cronPrintSchema, Columns: views.CronColumns(plan, o.systemd)}, plan.Entries())
}

// check refuses flags before anything is looked up.
func (o cronPrintOptions) check() error {
	if _, err := sandbox.ParseDuration(o.lock); err != nil {
		return fault.Usage("--lock-timeout: %w", err)
	}
	if o.textfile != "" {
		return metrics.CheckTextfile(o.textfile)
	}
	return nil
}
