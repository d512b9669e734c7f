package commands

import (
	"context"
	"errors"
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/fault"
	"sbx/internal/ops/launch"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

const createSchema = "sbx.create/v1"

// createOptions are the flags of create, as typed.
type createOptions struct {
	flags             *pflag.FlagSet
	env               envFlags
	labels            []string
	memory, disk, ttl string
	cpu               float64
	pids              int64
	spec              sandbox.Spec // what needs no reading
}

func newCreate(d *Deps) *cobra.Command {
	var o createOptions
	cmd := &cobra.Command{
		Use:     "create [flags] -- COMMAND...",
		GroupID: groupAct,
		Short:   "Start one sandbox and print its REF",
		Long: "Start one sandbox that runs COMMAND, and print its REF and nothing else.\n\n" +
			"It runs at --provider, else at `launch` of the configuration, else at local.\n" +
			"COMMAND is not a shell line: for one, write sh -c 'LINE'. Its environment is empty\n" +
			"except for --env, whose values are never stored or shown.\n" +
			"A COMMAND that is not found is exit 127, not executable 126, otherwise not\n" +
			"started 125.",
		Example: "sbx create -- sleep 60\n" +
			"sbx create --memory 256M --cpu 2 --ttl 10m -- sleep 60\n" +
			"sbx create --name crawler --env MODE=test -- sh -c 'echo $MODE; sleep 60'",
		Args:              d.afterDash("", "sbx create --memory 256M -- sleep 60"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.addFlags(cmd.Flags())
	completeFlag(cmd, "isolate", func() []string { return []string{"bwrap"} })
	return d.completeVerb(cmd, document{schema: createSchema, shape: output.ShapeItem, columns: output.Names(views.CreateColumns())},
		func(ctx context.Context, p *output.Printer, args []string) error {
			return runCreate(ctx, d, p, args, &o)
		})
}

func (o *createOptions) addFlags(f *pflag.FlagSet) {
	o.flags = f
	f.SortFlags = false
	f.StringVar(&o.spec.Name, "name", "", "set its `NAME`")
	f.StringVar(&o.memory, "memory", "", "memory limit, `SIZE`: 512M, 1.5G")
	f.Float64Var(&o.cpu, "cpu", 0, "processor limit in `CORES`: 2, 0.5")
	f.StringVar(&o.disk, "disk", "", "disk limit, `SIZE`")
	f.Int64Var(&o.pids, "pids", 0, "limit of processes and threads, `N`")
	f.StringVar(&o.ttl, "ttl", "", "terminate it after `DURATION`: 10m, 2h")
	f.StringVar(&o.spec.Template, "template", "", "from the provider's template `ID`")
	f.StringVar(&o.spec.Snapshot, "snapshot", "", "from snapshot `ID`")
	f.StringVar(&o.spec.Image, "image", "", "from container `IMAGE`")
	o.env.addFlags(f)
	o.env.addFiles(f)
	f.StringArrayVar(&o.labels, "label", nil, "set label `K=V` (repeatable)")
	f.StringVar(&o.spec.TaskID, "task", "", "set its task `ID`")
	f.StringVar(&o.spec.AgentType, "agent-type", "", "set its agent `TYPE`")
	f.StringVar(&o.spec.Workdir, "workdir", "", "run the command in `FOLDER`")
	f.BoolVar(&o.spec.RequireHardLimit, "require-hard-limit", false, "refuse (exit 11) where the kernel cannot enforce the limits")
	f.StringVar(&o.spec.Isolate, "isolate", "", "isolate it with `TOOL`: bwrap, if installed")
}

func runCreate(ctx context.Context, d *Deps, p *output.Printer, command []string, o *createOptions) error {
	spec, err := o.readSpec(ctx, d, command)
	if err != nil {
		return err
	}
	hideValues(p, spec.Env)
	made, err := launch.Create(ctx, d.Env, launch.CreateRequest{Spec: spec}, d.newObserver(p, nil))
	if err != nil {
		if open, is := errors.AsType[*providers.OpenCreateError](err); is && ctx.Err() != nil { // the error is that it was given up
			p.Warn("the request was sent, and its answer was not awaited: a sandbox may exist; `" + open.Mark.SearchCommand() + "` finds it")
		}
		return err
	}
	err = output.ShowItem(p, output.ItemSpec[sandbox.Sandbox]{
		Schema: createSchema, Columns: views.CreateColumns(),
		Line: func(s sandbox.Sandbox) string { return s.Ref().String() },
	}, made)
	if err != nil { // no other output names its reference
		p.Warn(made.Ref().String() + " runs; `" + d.Process.Name() + " terminate " + made.Ref().String() + "` ends it")
	}
	return err
}

// readSpec turns the flags into a Spec; every mistake is fault.KindUsage. What was
// given empty is a mistake (an unset shell variable), not "no limit".
func (o *createOptions) readSpec(ctx context.Context, d *Deps, command []string) (sandbox.Spec, error) {
	spec := o.spec
	spec.Command = command
	if err := checkTexts(o.flags, "name", "task", "agent-type", "template", "snapshot", "image", "workdir", "isolate"); err != nil {
		return spec, err
	}
	if err := o.readLimits(&spec); err != nil {
		return spec, err
	}
	var err error
	if spec.Labels, err = readLabels(o.labels); err != nil {
		return spec, err
	}
	if spec.Labels[sandbox.LabelOwner] == "" {
		spec.Labels[sandbox.LabelOwner] = userName(d.Process.Lookup)
	}
	spec.Env, err = o.env.readVariables(ctx, d)
	return spec, err
}

// userName is the user who makes a sandbox; cron sets no USER.
func userName(lookup func(string) (string, bool)) string {
	for _, name := range []string{"USER", "LOGNAME"} {
		if who, ok := lookup(name); ok && isPrintable(who) && who != "" {
			return who
		}
	}
	return "sbx"
}

func (o *createOptions) readLimits(spec *sandbox.Spec) error {
	var err error
	given := o.flags.Changed
	if given("memory") {
		if spec.MemoryBytes, err = sandbox.ParseSize(o.memory); err != nil {
			return fault.Usage("--memory: %w", err)
		}
	}
	if given("disk") {
		if spec.DiskBytes, err = sandbox.ParseSize(o.disk); err != nil {
			return fault.Usage("--disk: %w", err)
		}
	}
	if given("ttl") {
		if spec.TTL, err = sandbox.ParseDuration(o.ttl); err != nil {
			return fault.Usage("--ttl: %w", err)
		}
		if err := refuseShort("--ttl", spec.TTL); err != nil {
			return err
		}
	}
	if given("cpu") && (!(o.cpu > 0) || math.IsInf(o.cpu, 0)) {
		return fault.Usage("--cpu: %g is not a number of cores", o.cpu).WithHint("write it like 2 or 0.5")
	}
	if given("pids") && o.pids < 1 {
		return fault.Usage("--pids: %d is not a number of processes", o.pids).WithHint("write a whole number from 1")
	}
	spec.CPU, spec.PIDs = o.cpu, o.pids
	return nil
}
