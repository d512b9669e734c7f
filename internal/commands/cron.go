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
	opscron "sbx/internal/ops/cron"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

func newCron(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cron",
		GroupID: groupTool,
		Short:   "Print cron jobs that clean up unattended, and check that they ran",
		Long: "Print cron jobs that clean up unattended, and check that they ran.\n\n" +
			"Four jobs, called layers, catch what the others miss: stuck sandboxes (every 5\n" +
			"minutes), old ones (15), a nearly full quota (5), records that differ from reality\n" +
			"(hourly). sbx does not install them.",
		Example: "sbx cron\nsbx cron print",
		Args:    unknownVerb(d),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCronPrint(d), newCronCheck(d))
	return cmd
}

func layerWords() []string { return wordsOf(cron.Layers()) }

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
			return nil, fault.Usage("--layer: %q is not a layer", w).WithHint("%s", fault.Meant(w, layerWords()))
		}
	}
	if len(words) == 0 {
		return cron.Layers(), nil
	}
	return list, nil
}

type cronPrintOptions struct {
	systemd    bool
	checkOnly  bool
	emergency  bool
	layers     []string
	production []string
	lock       string
	ping       string
	textfile   string
	envFile    string
}

const cronPrintSchema = "sbx.cron.print/v1"

func newCronPrint(d *Deps) *cobra.Command {
	var o cronPrintOptions
	cmd := &cobra.Command{
		Use:        "print",
		SuggestFor: []string{"show", "install", "list"},
		Short:      "Print crontab lines, or systemd units, for the cleaning layers",
		Long: "Print crontab lines, or systemd units, for the cleaning layers.\n\n" +
			"The jobs use the profiles, configuration and state of this shell, by absolute paths,\n" +
			"so they work in an empty environment. Variables that the configuration reads are\n" +
			"listed and read from a file (--env-file); no secret is printed.\n" +
			"{layer} in --ping and --textfile stands for the name of the layer. The minutes are\n" +
			"derived from the host name, so that hosts do not all start at once.\n\n" +
			"The jobs of a production profile are printed as comments unless --production names\n" +
			"it.\n\n" +
			"Comments say what the jobs would miss: profiles without an owner setting, and\n" +
			"profiles without a quota or max_sandboxes, which layer usage cannot watch. A\n" +
			"provider's own emergency cleanup above 80% is printed as a comment, since it also\n" +
			"terminates active sandboxes; --emergency enables it.",
		Example: "sbx cron print\nsbx cron print --systemd --textfile /var/lib/node_exporter/sbx-{layer}.prom\n" +
			"sbx cron print --provider prod --check-only -o json",
		Args: d.noWords("`--layer NAME` chooses what is printed"),
	}
	f := cmd.Flags()
	f.BoolVar(&o.systemd, "systemd", false, "services and timers instead of crontab lines")
	f.BoolVar(&o.checkOnly, "check-only", false, "layer reconcile only checks and changes nothing")
	f.BoolVar(&o.emergency, "emergency", false, "layer usage also runs the provider's emergency cleanup, which\nterminates active sandboxes")
	layerFlag(cmd, &o.layers, "only this `LAYER` (repeatable)")
	f.StringSliceVar(&o.production, "production", nil, "let the lines act in production profile `NAME` (repeatable); without\nit its lines are comments")
	completeFlag(cmd, "production", func() []string { return d.ProductionNames() })
	f.StringVar(&o.lock, "lock-timeout", "2m", "let a run wait `DURATION` for another one")
	f.StringVar(&o.ping, "ping", "", "let each line ping `URL`; notify.ping_env keeps it out of the crontab")
	f.StringVar(&o.textfile, "textfile", "", "let each line write its metrics to `FILE` (.prom)")
	f.StringVar(&o.envFile, "env-file", "", "read secrets from `FILE`; default: cron.env beside the configuration")
	return d.completeVerb(cmd, document{schema: cronPrintSchema, shape: output.ShapeList, columns: output.Names(views.CronColumns(cron.Plan{}, false))},
		func(_ context.Context, p *output.Printer, _ []string) error { return printCron(d, p, o) })
}

func printCron(d *Deps, p *output.Printer, o cronPrintOptions) error {
	req, err := o.readRequest()
	if err != nil {
		return err
	}
	plan, err := opscron.PlanLines(d.Env, req)
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
func (o cronPrintOptions) readRequest() (opscron.PlanRequest, error) {
	req := opscron.PlanRequest{
		Production: o.production, CheckOnly: o.checkOnly, Emergency: o.emergency, LockTimeout: o.lock, Ping: o.ping, Textfile: o.textfile,
		EnvFile: o.envFile,
	}
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
	var req opscron.CheckRequest
	cmd := &cobra.Command{
		Use:        "check",
		SuggestFor: []string{"status", "verify"},
		Short:      "Check from the recorded runs that the cron jobs work",
		Long: "Check from the recorded runs that the cron jobs work.\n\n" +
			"A layer passes when each selected profile had a run by the layer's rule within two of\n" +
			"its periods, and no sandbox was skipped because nobody owns it; otherwise the exit\n" +
			"code is 10. A layer without any record is unknown: exit 7. A dry run, and a run that\n" +
			"selects less than its layer (--label, a longer --older-than), prove nothing. With\n" +
			"-o nagios it is a monitoring plugin: one line, exit 0, 1, 2 or 3.\n\n" +
			"A failed run alerts; a run that never started cannot: use --notify.",
		Example: "sbx cron check\nsbx cron check --layer stuck -o nagios\nsbx cron check --notify -q",
		Args:    d.noWords("`--layer NAME` chooses what is checked"),
	}
	layerFlag(cmd, &words, "only this `LAYER` (repeatable); without one all four are expected")
	cmd.Flags().BoolVar(&req.Notify, "notify", false, "alert the receivers under notify in the configuration")
	return d.completeVerb(cmd, document{schema: cronCheckSchema, shape: output.ShapeList, columns: output.Names(views.CronStatusColumns()), nagios: true},
		func(ctx context.Context, p *output.Printer, _ []string) (err error) {
			if req.Layers, err = parseLayers(words); err != nil {
				return err
			}
			r, err := opscron.CheckLayers(ctx, d.Env, req, d.newObserver(p, nil))
			if err != nil {
				return err
			}
			return views.ShowCronCheck(p, cronCheckSchema, r)
		})
}
