package commands

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/metrics"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

func newCron(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cron",
		GroupID: groupTool,
		Short:   "Print cron lines that clean unattended, and prove that they ran",
		Long: "Print cron lines that clean unattended, and prove that they ran.\n\n" +
			"Four layers catch what the others miss: what is stuck (every 5 minutes), what is\n" +
			"too old (15), a quota that runs short (5), records that differ from reality\n" +
			"(hourly). sbx installs nothing itself.",
		Example: "sbx cron\nsbx cron print",
		Args:    unknownVerb,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCronPrint(d), newCronCheck(d))
	return cmd
}

func layerWords() []string {
	var words []string
	for _, l := range cron.Layers() {
		words = append(words, string(l))
	}
	return words
}

func layerFlag(cmd *cobra.Command, words *[]string, help string) {
	cmd.Flags().StringSliceVar(words, "layer", nil, help)
	completeFlag(cmd, "layer", layerWords)
}

// parseLayers reads --layer; without one all are meant, in their order.
func parseLayers(words []string) ([]cron.Layer, error) {
	var list []cron.Layer
	for _, l := range cron.Layers() {
		if slices.Contains(words, string(l)) {
			list = append(list, l)
		}
	}
	for _, w := range words {
		if cron.Every(cron.Layer(w)) == 0 {
			return nil, fault.Usage("--layer: %q is no layer", w).WithHint("%s", fault.Meant(w, layerWords()))
		}
	}
	if len(words) == 0 {
		return cron.Layers(), nil
	}
	return list, nil
}

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
	return d.completeVerb(cmd, document{schema: cronPrintSchema, shape: output.ShapeList, columns: output.Names(views.CronColumns(cron.Plan{}, false))},
		func(_ context.Context, p *output.Printer, _ []string) error { return printCron(d, p, o) })
}

func printCron(d *Deps, p *output.Printer, o cronPrintOptions) error {
	req, err := o.readRequest()
	if err != nil {
		return err
	}
	plan, err := ops.PlanCron(d.Env, req)
	if err != nil {
		return err
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

// readRequest reads the flags before anything is looked up.
func (o cronPrintOptions) readRequest() (ops.CronPlanRequest, error) {
	req := ops.CronPlanRequest{CheckOnly: o.checkOnly, Emergency: o.emergency, LockTimeout: o.lock, Ping: o.ping, Textfile: o.textfile, EnvFile: o.envFile}
	var err error
	if req.Layers, err = parseLayers(o.layers); err != nil {
		return req, err
	}
	if _, err := sandbox.ParseDuration(o.lock); err != nil {
		return req, fault.Usage("--lock-timeout: %w", err)
	}
	if o.textfile != "" {
		return req, metrics.CheckTextfile(o.textfile)
	}
	return req, nil
}

const cronCheckSchema = "sbx.cron.check/v1"

func newCronCheck(d *Deps) *cobra.Command {
	var words []string
	var req ops.CronCheckRequest
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Prove from what is recorded that the cleaning layers run",
		Long: "Prove from what is recorded that the cleaning layers run.\n\n" +
			"A layer is in order when each of the selected profiles had a run by its rule within\n" +
			"two of its periods, and nothing stays because nobody owns it; otherwise it is exit\n" +
			"10. One of which nothing is recorded is unknown, exit 7. A dry run, and a run that\n" +
			"selects less than its layer (--label, a longer --older-than), prove nothing. With\n" +
			"-o nagios it is a monitoring plugin: one line, exit 0, 1, 2 or 3.\n\n" +
			"A run that fails tells of itself; one that never comes cannot. --notify tells of it.",
		Example: "sbx cron check\nsbx cron check --layer stuck -o nagios\nsbx cron check --notify -q",
		Args:    usageArgs(noArgs, "`--layer NAME` chooses what is checked"),
	}
	layerFlag(cmd, &words, "only this `LAYER` (repeatable); without one all four are expected")
	cmd.Flags().BoolVar(&req.Notify, "notify", false, "tell whom the configuration names under notify of what is overdue")
	return d.completeVerb(cmd, document{schema: cronCheckSchema, shape: output.ShapeList, columns: output.Names(views.CronStatusColumns()), nagios: true},
		func(ctx context.Context, p *output.Printer, _ []string) (err error) {
			if req.Layers, err = parseLayers(words); err != nil {
				return err
			}
			r, err := ops.CheckCron(ctx, d.Env, req, d.newObserver(p, nil))
			if err != nil {
				return err
			}
			return views.ShowCronCheck(p, cronCheckSchema, r)
		})
}
