package commands

import (
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/views"
)

// newRunTask is the verb that a background runner is.
func newRunTask(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use: ops.RunnerVerb, Hidden: true, Short: "Run a task that `sbx run --detach` has launched", Args: noArgs,
		Long: "Run a task that `sbx run --detach` has launched; the order comes on standard input.", Example: "sbx run --detach -- true",
	}
	return d.verb(cmd, document{schema: runSchema, shape: output.ShapeItem, columns: output.Names(views.TaskItem())},
		func(ctx context.Context, p *output.Printer, _ []string) error { return runTask(ctx, d, p) })
}

func runTask(ctx context.Context, d *Deps, p *output.Printer) error {
	var o ops.RunnerOrder
	if err := json.NewDecoder(io.LimitReader(d.Process.Stdin, 4<<20)).Decode(&o); err != nil || o.Task == "" {
		return fault.Usage("%s: there is no order on standard input", ops.RunnerVerb).WithHint("`sbx run --detach -- COMMAND` starts it")
	}
	if _, err := d.Config(); err != nil {
		return err
	}
	log := &joblog{path: d.Path(o.Joblog), warn: p.Warn}
	launched, err := ops.RunOrder(ctx, d.Env, o, d.observe(p, nil), views.NewTaskReporter(p))
	return endLaunch(p, launched, d.Now(), runSchema, log, err)
}
