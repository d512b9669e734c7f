package commands

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

const logsSchema = "sbx.logs/v1"

// logsOptions are the flags of logs, as typed.
type logsOptions struct {
	flags                 *pflag.FlagSet
	follow, patterns, raw bool
	since, grep           string
	tail                  int
}

func newLogs(d *Deps) *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:     "logs REF",
		GroupID: groupLook,
		Short:   "Show what the program in a sandbox has written",
		Long: "Show what the program in a sandbox has written.\n\n" +
			"Control characters are shown escaped; --raw gives the bytes as they are.\n" +
			"Of a sandbox that is gone the log is shown where its provider still has it.\n" +
			"-f goes on until the program or its sandbox ends. --tail counts the lines that\n" +
			"are shown; with -f it counts all lines, so that new ones come at once.\n" +
			"What is not kept any more is said: on stderr, and as missing_lines and\n" +
			"missing_bytes in JSON, whose `complete` is false then.\n" +
			"--patterns shows only lines that say something known, such as \"out of memory\",\n" +
			"and what it means. -o wide adds time and stream.",
		Example: "sbx logs local/k3v9x2mq7a --tail 20\n" +
			"sbx logs local/k3v9x2mq7a -f -o wide\n" +
			"sbx logs local/k3v9x2mq7a --since 10m --grep '(?i)error|timeout'\n" +
			"sbx logs local/k3v9x2mq7a --patterns",
		Args:              usageArgs(cobra.ExactArgs(1), "name one sandbox: sbx logs REF"),
		ValidArgsFunction: d.completeRefs(false),
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
	f.BoolVarP(&o.follow, "follow", "f", false, "go on with what comes, until the program or its sandbox ends")
	f.StringVar(&o.since, "since", "", "not older than `AGE` (10m), or since a time (2026-11-20T12:00:00Z)")
	f.IntVar(&o.tail, "tail", 0, "the last `N` lines")
	f.StringVar(&o.grep, "grep", "", "lines that match `RE`; (?i) at its start ignores case")
	f.BoolVar(&o.patterns, "patterns", false, "lines that show a known pattern, with its meaning")
	f.BoolVar(&o.raw, "raw", false, "bytes as they are, for files and pipes")
}

func runLogs(ctx context.Context, d *Deps, p *output.Printer, word string, o *logsOptions) error {
	if err := o.checkFlags(p); err != nil {
		return err
	}
	req, err := o.readRequest(word, d.Now())
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
	r, err := ops.Logs(reading, d.Env, req, watch)
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
	if o.flags.Changed("tail") && o.tail < 1 {
		return fault.Usage("--tail: %d is no number of lines", o.tail).WithHint("leave it out for all lines; -f --since 1s shows new ones only")
	}
	return nil
}

func (o *logsOptions) readRequest(word string, now time.Time) (ops.LogsRequest, error) {
	req := ops.LogsRequest{Word: word, Follow: o.follow, Patterns: o.patterns, Tail: o.tail}
	var err error
	if o.since != "" {
		if req.Since, err = parseSince(o.since, now); err != nil {
			return req, err
		}
	}
	if o.grep == "" {
		return req, nil
	}
	if req.Grep, err = regexp.Compile(o.grep); err != nil {
		return req, fault.Usage("--grep: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: ")).WithHint(`the syntax is that of RE2 (go.dev/s/re2syntax); a backslash makes ( [ * + ? . plain`)
	}
	return req, nil
}

// parseSince reads an age or an RFC 3339 time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	age, err := sandbox.ParseDuration(text)
	if err != nil {
		return time.Time{}, fault.Usage("--since: %w", err).WithHint("or write a time: %s", now.UTC().Format(time.RFC3339))
	}
	return now.Add(-age), nil
}
