// Package commands is the command line: one file a verb, each with its
// arguments, its flags and one call downstairs. What a verb does lives in the
// rooms below; what it prints is said as columns and decided in output.
//
// No HTTP, no provider type and no exit of the process enters this room, and a
// verb never asks which format it prints.
package commands

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/drill"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/launch"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// The groups of the help page, in its order.
const (
	groupLook = "look"
	groupAct  = "act"
	groupTool = "tool"
)

// document is the frame around a verb: the schema of what it prints, the columns
// that --columns may name, and the formats that make no sense for it.
type document struct {
	schema  string
	shape   output.Shape
	columns []string            // nil = --columns is refused
	refuses []output.FormatName // beside nagios, which only checks print
	nagios  bool                // it is a check
}

// work is a verb's own part. It gets the operator's deadline in ctx.
type work func(ctx context.Context, p *output.Printer, args []string) error

// columnsKey is where a command keeps its column names for completion.
const columnsKey = "columns"

// completeVerb completes a command: its document, its formats, --timeout, and one valid
// document whatever goes wrong.
func (d *Deps) completeVerb(cmd *cobra.Command, doc document, do work) *cobra.Command {
	if !doc.nagios {
		doc.refuses = append(doc.refuses, output.Nagios)
	}
	cmd.Annotations = map[string]string{columnsKey: strings.Join(doc.columns, ",")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop, wrong := d.withTimeout(cmd.Context())
		defer stop()
		d.Began(ctx)
		p, err := d.Printer()
		if err != nil {
			return causeOr(ctx, err)
		}
		defer p.ShowWaits()()
		if err = d.checkFlags(cmd, p, doc); err == nil {
			err = wrong
		}
		if err == nil {
			err = causeOr(ctx, do(ctx, p, args))
		}
		if err == nil || alreadyShown(err) {
			return err
		}
		err = withUsageHint(cmd, err)
		if p.Format.Name() == output.Nagios && doc.nagios {
			return views.PluginFailed(p, err)
		}
		return p.Failed(doc.schema, doc.shape, err)
	}
	return cmd
}

// withUsageHint gives a usage error that has no hint the one to the help of its verb.
func withUsageHint(cmd *cobra.Command, err error) error {
	_, one := err.(*fault.Error) //nolint:errorlint // of several, each is printed with its own hint
	if !one || fault.KindOf(err) != fault.KindUsage || fault.HintOf(err) != "" {
		return err
	}
	return (&fault.Error{Kind: fault.KindUsage, Err: err}).WithHint("`%s --help` lists the flags and has examples", cmd.CommandPath())
}

// checkFlags refuses what was given empty and what the verb could not print.
func (d *Deps) checkFlags(cmd *cobra.Command, p *output.Printer, doc document) error {
	if err := p.Format.Refuse(cmd.Name(), doc.refuses...); err != nil {
		return err
	}
	if err := refuseEmpty(cmd.Flags()); err != nil {
		return err
	}
	return checkColumns(cmd.Name(), doc.columns, p.Columns)
}

func checkColumns(command string, known, wanted []string) error {
	if len(wanted) > 0 && len(known) == 0 {
		return fault.Usage("%s has no columns", command).WithHint("leave --columns out")
	}
	columns := make([]output.Column[any], len(known))
	for i, name := range known {
		columns[i].Name = name
	}
	return output.CheckColumns(columns, wanted)
}

// unshownCause is ops.EndCause of an error that is not printed yet.
func unshownCause(ctx context.Context, err error) error {
	if alreadyShown(err) {
		return nil
	}
	return ops.EndCause(ctx, err)
}

// causeOr is what ended ctx, where that is behind an error, else the error.
func causeOr(ctx context.Context, err error) error {
	if cause := unshownCause(ctx, err); cause != nil {
		return cause
	}
	return err
}

// alreadyShown says that nothing is left to print; a program's own exit code
// needs no words.
func alreadyShown(err error) bool {
	_, shown := errors.AsType[output.ShownError](err)
	_, program := errors.AsType[launch.ProgramExit](err)
	return shown || program || errors.Is(err, output.ErrClosed)
}

// withTimeout applies --timeout to the whole verb. Beside an error the context is
// the one that was given.
func (d *Deps) withTimeout(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if d.Globals.Timeout == "" {
		return ctx, func() {}, nil
	}
	limit, err := sandbox.ParseDuration(d.Globals.Timeout)
	if err != nil {
		return ctx, func() {}, fault.Usage("--timeout: %w", err)
	}
	ctx, stop := context.WithTimeoutCause(ctx, limit,
		fault.New(fault.KindTimeout, "the limit of --timeout %s was reached", d.Globals.Timeout))
	return ctx, stop, nil
}

// Deps is what every verb is handed: what operations need, and the command line's own. The
// costly parts are functions, so that help and version touch neither configuration nor
// provider.
type Deps struct {
	*ops.Env

	Globals *Globals

	// Runbooks are the documents that sbx ships.
	Runbooks fs.FS

	Printer func() (*output.Printer, error)
	// Size reads the size of the terminal and, after it, every change; the
	// func stops it. Zero sizes mean that there is no terminal.
	Size func() (providers.Size, <-chan providers.Size, func())
	// RawTerminal puts the terminal into raw mode; the func puts it back.
	RawTerminal func() (func(), error)
	// Play runs another command line of this program, without its name, as if it had been typed with an empty
	// stdin, and returns its exit code. The end of ctx is an interrupt.
	Play func(ctx context.Context, args []string, stdout, stderr io.Writer) int
	// Began is called when a verb starts, with the context that ends it; an earlier failure is
	// wrong use. Printer, Config and Input are ready by then.
	Began func(ctx context.Context)

	stage *drill.Stage // whose dashboard this is; nil = that of the fleet
}

// Globals are the flags that every verb takes.
type Globals struct {
	Providers []string
	Output    string
	Columns   []string
	Timeout   string
	Config    string
	NoColor   bool
	Quiet     bool
	Verbose   int
	// Settings are flags of a verb that win over the configuration, by their names there; a
	// verb sets them before it asks for Config.
	Settings map[string]string
}

// typedLine is the command line that was typed, its words quoted for a shell and without secrets.
func (d *Deps) typedLine(p *output.Printer) []string {
	if len(d.Process.Args) < 2 {
		return nil
	}
	line := []string{d.Process.Name()}
	for _, word := range d.Process.Args[1:] {
		line = append(line, views.ShellWord(p.Redact(word)))
	}
	return line
}

// observer is the command line as an operation sees it.
type observer struct {
	*output.Printer

	d       *Deps
	items   func(item any) // nil = they are not shown one by one
	answers *bufio.Reader  // of the terminal; one reader serves a whole run
}

func (d *Deps) newObserver(p *output.Printer, items func(item any)) *observer {
	return &observer{Printer: p, d: d, items: items, answers: bufio.NewReader(d.Process.Stdin)}
}

// observeWhileWritable shows each item as it comes. An item that cannot be written ends the
// context that it returns, and broken reports that afterwards: without a reader there is
// nothing to read on for.
func (d *Deps) observeWhileWritable(
	ctx context.Context, p *output.Printer, show func(item any) error,
) (reading context.Context, watch *observer, broken func() error) {
	reading, stop := context.WithCancel(ctx)
	var failed error
	watch = d.newObserver(p, func(item any) {
		if failed != nil {
			return
		}
		if failed = show(item); failed != nil {
			stop()
		}
	})
	return reading, watch, func() error {
		stop()
		return failed
	}
}

// Progress is ops.Observer's.
func (o *observer) Progress(label string) ops.Progress { return o.Printer.Progress(label) } //nolint:ireturn // the operation's

// Item is ops.Observer's.
func (o *observer) Item(item any) {
	if o.items != nil {
		o.items(item)
	}
}

// Attended is engine.Observer's.
func (o *observer) Attended() bool { return o.d.isAttended() }

// confirm is an ops.Asker: it shows what a question is about and takes the answer of the terminal.
func (o *observer) confirm(ctx context.Context, q ops.Question) (bool, error) {
	answer, _, err := o.Ask(ctx, q)
	if err == nil && answer == q.Word {
		return true, nil
	}
	if o.Attended() {
		o.Note("nothing was done")
	}
	return false, err
}

// doAct asks what an act wants answered, and does it.
func (*Deps) doAct(ctx context.Context, act *ops.Act, watch *observer) ops.ActResult {
	allowed, err := act.Permit(ctx, watch.confirm)
	if err != nil {
		return ops.NotBegun(act.RunID, err)
	}
	return act.Do(ctx, watch, allowed)
}

// Ask is engine.Observer's.
func (o *observer) Ask(ctx context.Context, q ops.Question) (text string, answered bool, err error) {
	if !o.Attended() {
		return "", false, nil
	}
	if len(q.Targets) > 0 {
		o.Aside(func(s *output.Sheet) { views.PlannedEndsTable(s, q.Targets, o.d.Now()) })
	}
	if q.Objection != "" {
		o.Warn(q.Objection)
	}
	return o.d.askLine(ctx, o.Printer, o.answers, q.Prompt)
}

func (d *Deps) isAttended() bool { return d.Process.Stdin.TTY && d.Process.Stderr.TTY }

// askLine puts a question to the terminal and waits for a line or the end of ctx. Entered = there was a line: an
// input that ends has the empty answer.
func (*Deps) askLine(ctx context.Context, p *output.Printer, answers *bufio.Reader, question string) (text string, entered bool, err error) {
	answered := p.Prompt(question)
	line := make(chan string, 1)
	go func() {
		text, _ := answers.ReadString('\n') // an end without an answer is the empty one
		line <- text
	}()
	select {
	case <-ctx.Done():
		answered(false)
		return "", false, ctx.Err()
	case text := <-line:
		entered := strings.HasSuffix(text, "\n")
		answered(entered)
		return strings.TrimSpace(text), entered, nil
	}
}
