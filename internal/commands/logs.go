package commands

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/fault"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

const logsSchema = "sbx.logs/v1"

// logsOptions are the flags of logs, as typed.
type logsOptions struct {
	flags                  *pflag.FlagSet
	follow, patterns, raw  bool
	previous               bool
	since, grep, container string
	tail                   int
}

func newLogs(d *Deps) *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:     "logs REF|TASK",
		GroupID: groupLook,
		Short:   "Show the output of a sandbox's program",
		Long: "Show the output of a sandbox's program, or of the last attempt of a task, which is named\n" +
			"by its id or key.\n\n" +
			"Control characters are escaped; --raw prints the bytes unchanged.\n" +
			"For a sandbox that is gone it works if the provider still has the log.\n" +
			"-f continues until the program or its sandbox ends, also where the program is started\n" +
			"again; --previous shows what it wrote before that (Docker, Kubernetes). --container\n" +
			"names another container of a pod (Kubernetes). --tail counts matching\n" +
			"lines; with -f it counts all lines, so that new ones appear at once.\n" +
			"If old output is lost, stderr says so, and JSON has missing_lines and\n" +
			"missing_bytes, and `complete` is false.\n" +
			"--patterns shows only lines that match a known problem, such as \"out of memory\",\n" +
			"and their meaning. -o table and -o wide add time and stream.",
		Example: "sbx logs local/k3v9x2mq7a --tail 20\n" +
			"sbx logs local/k3v9x2mq7a -f -o wide\n" +
			"sbx logs local/k3v9x2mq7a --since 10m --grep '(?i)error|timeout'\n" +
			"sbx logs local/k3v9x2mq7a --patterns",
		Args:              usageArgs(oneArg("REF"), "name one sandbox: sbx logs REF"),
		ValidArgsFunction: d.completeRefs(false, offerAll),
	}
	o.addFlags(cmd.Flags())
	return d.completeVerb(cmd, document{
		schema: logsSchema, shape: output.ShapeList, columns: output.Names(views.LogColumns()), refuses: []output.FormatName{output.NameOnly},
	}, func(ctx context.Context, p *output.Printer, args []string) error {
		return runLogs(ctx, d, p, args[0], &o)
	})
}

func (o *logsOptions) addFlags(f *pflag.FlagSet) {
	o.flags = f
	f.BoolVarP(&o.follow, "follow", "f", false, "follow the output until the program or its sandbox ends")
	f.StringVar(&o.since, "since", "", "since `TIME`: 10m (ago), 12:00 (UTC), yesterday, 2026-11-20T12:00:00Z")
	f.IntVar(&o.tail, "tail", 0, "the last `N` lines")
	f.StringVar(&o.grep, "grep", "", "lines that match `RE`; (?i) at its start ignores case")
	f.BoolVar(&o.previous, "previous", false, "what was written before the program was last started again")
	f.StringVar(&o.container, "container", "", "the log of the container `NAME` of a pod")
	f.BoolVar(&o.patterns, "patterns", false, "lines that match a known problem, with its meaning")
	f.BoolVar(&o.raw, "raw", false, "unchanged bytes, for files and pipes")
}

func runLogs(ctx context.Context, d *Deps, p *output.Printer, word string, o *logsOptions) error {
	if err := o.checkFlags(p); err != nil {
		return err
	}
	req, err := o.readRequest(word, p.Format.Human() && len(p.Columns) == 0, d.Now())
	if err != nil {
		return err
	}
	page, err := views.NewLogPage(p, logsSchema, views.LogPageOptions{
		Raw: o.raw, Patterns: o.patterns, Follow: o.follow, Chosen: o.grep != "" || o.patterns || o.since != "",
	})
	if err != nil {
		return err
	}
	reading, watch, broken := d.observeWhileWritable(ctx, p, page.Add)
	r, err := look.Logs(reading, d.Env, req, watch)
	switch lost := broken(); {
	case lost != nil && o.raw:
		return lost // the list has not seen what passed it by
	case err != nil:
		return err
	}
	return page.Close(r)
}

// checkFlags refuses what cannot be printed or meant.
func (o *logsOptions) checkFlags(p *output.Printer) error {
	if o.follow {
		if err := p.Format.Allow("logs -f", output.Table, output.WideTable, output.CSV, output.NDJSON); err != nil {
			return err
		}
	}
	if o.raw {
		if err := p.Format.Allow("logs --raw", output.Table); err != nil {
			return err
		}
		if len(p.Columns) > 0 {
			return fault.Usage("logs --raw has no columns").WithHint("leave --columns or --raw out")
		}
	}
	if o.previous && o.follow {
		return fault.Usage("logs --previous has an end: nothing is added to it").WithHint("leave --follow or --previous out")
	}
	if o.flags.Changed("tail") && o.tail < 1 {
		return fault.Usage("--tail: %d is not a number of lines", o.tail).WithHint("leave it out for all lines; -f --since 1s shows new ones only")
	}
	return nil
}

func (o *logsOptions) readRequest(word string, text bool, now time.Time) (look.LogsRequest, error) {
	req := look.LogsRequest{Word: word, Follow: o.follow, Patterns: o.patterns, Tail: o.tail, Open: text, Previous: o.previous, Container: o.container}
	var err error
	if o.since != "" {
		if req.Since, err = sandbox.ParseMoment(o.since, now); err != nil {
			return req, fault.Usage("--since: %w", err)
		}
	}
	if o.grep == "" {
		return req, nil
	}
	if req.Grep, err = regexp.Compile(o.grep); err != nil {
		return req, fault.Usage(
			"--grep: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "),
		).WithHint(`the syntax is that of RE2 (go.dev/s/re2syntax); a backslash makes ( [ * + ? . plain`)
	}
	return req, nil
}
