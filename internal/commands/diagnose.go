package commands

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/views"
)

const diagnoseSchema = "sbx.diagnose/v1"

func newDiagnose(d *Deps) *cobra.Command {
	var log string
	cmd := &cobra.Command{
		Use:     "diagnose [REF|TASK]",
		GroupID: groupLook,
		Short:   "Investigate: what is wrong, why, and what to type",
		Long: "Investigate all sandboxes, one, or the sandbox of a task. Five steps run at once: count,\n" +
			"stuck, logs, resources, cleanup. The result: which are stuck, the causes by their\n" +
			"evidence and why not the next one, the flags of the runbook, and the commands to type.\n" +
			"It changes nothing; -v shows every question with its answer. The page of one sandbox is\n" +
			"that of `inspect`.\n\n" +
			"A step whose source fails says \"unknown\" and why; the others go on. A sandbox that is\n" +
			"gone is explained by what is on record.\n\n" +
			"Exit 0: in order. 10: something is wrong: a sandbox is stuck, a cause is probable, or a\n" +
			"flag holds that is a warning or critical (but not age and silence alone).\n" +
			"3: a provider could not be asked. 7: nothing was found, but not everything is known.\n" +
			"5: nobody knows the REF.\n\n" +
			"--cleanup-log reads the log of a cleanup job that sbx does not run, such as the\n" +
			"worker's: lines with a time, or JSON objects.",
		Example:           "sbx diagnose\nsbx diagnose local/k3v9x2mq7a\nsbx diagnose t-k3v9x2mq7abc -o json\nsbx diagnose --cleanup-log -",
		Args:              usageArgs(atMostOneArg("REF or TASK"), "without one it investigates all sandboxes"),
		ValidArgsFunction: d.completeRefs(false, offerAll),
	}
	cmd.Flags().StringVar(&log, "cleanup-log", "", "read the log of a cleanup job from `FILE`; - is standard input")
	doc := document{schema: diagnoseSchema, shape: output.ShapeItem, columns: output.Names(views.DiagnoseColumns()), refuses: output.RowFormats()}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		var req look.DiagnoseRequest
		if len(args) > 0 {
			if req.Word = args[0]; req.Word == "" {
				return fault.Usage("the REF is empty").WithHint("is a shell variable unset? Without a REF all sandboxes are investigated")
			}
		}
		if err := d.readCleanupLog(ctx, cmd.Flags().Changed("cleanup-log"), log, &req); err != nil {
			return err
		}
		r, err := look.Diagnose(ctx, d.Env, req, d.newObserver(p, nil))
		if err != nil {
			return err
		}
		return views.ShowDiagnosis(p, diagnoseSchema, r, d.Process.Name())
	})
}

// maxCleanupLog bounds the log of a cleanup job: a month of a run every five minutes.
const maxCleanupLog = 16 << 20

// readCleanupLog reads the file of --cleanup-log, or standard input.
func (d *Deps) readCleanupLog(ctx context.Context, given bool, name string, req *look.DiagnoseRequest) error {
	if !given {
		return nil
	}
	if name == "" {
		return fault.Usage("--cleanup-log: no file is named").WithHint("is a shell variable unset?")
	}
	if req.LogName = name; name == "-" {
		req.LogName = "standard input"
		var text []byte
		err := hostfile.Lines(ctx, d.Process.Stdin, func(line string) error {
			if text = append(append(text, line...), '\n'); len(text) > maxCleanupLog {
				return errTooMuchLog
			}
			return nil
		})
		req.CleanupLog = string(text)
		if err != nil && ctx.Err() == nil {
			return fault.Usage("--cleanup-log: standard input: %w", err).WithHint("%s", cleanupLogHint)
		}
		return err
	}
	text, err := hostfile.File{Flag: "--cleanup-log", Path: d.Path(name), Limit: maxCleanupLog, Hint: cleanupLogHint}.Read(ctx)
	req.CleanupLog = strings.TrimPrefix(string(text), "\ufeff")
	return err
}

const cleanupLogHint = "give the log of the cleanup job as text, of a large one the last lines: tail -n 20000 FILE | sbx diagnose --cleanup-log -"

var errTooMuchLog = errors.New("larger than 16 MiB, the limit")
