package commands

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops/launch"
	"sbx/internal/output"
	"sbx/internal/process"
	"sbx/internal/providers"
)

type execOptions struct {
	stdin, tty bool
	env        envFlags
	watch      *shellWatch // of a shell that a person waits for; nil = of a command
}

func newExec(d *Deps) *cobra.Command {
	var o execOptions
	cmd := &cobra.Command{
		Use:     "exec REF -- COMMAND...",
		GroupID: groupAct,
		Short:   "Run a command inside a sandbox",
		Long: "Run a command inside a running sandbox, within its limits.\n\n" +
			"Its output is passed on unchanged, and its exit code is that of sbx: 128+n for a\n" +
			"death by signal n. If it could not be started: 127 not found, 126 not executable,\n" +
			"125 otherwise. Errors of sbx itself have the usual codes.\n" +
			"--timeout ends the command (124), and so does Ctrl-C (130); the sandbox keeps running.\n" +
			"The end of the command has a second: if it is not confirmed by then, the error says\n" +
			"that the command may still run.",
		Example: "sbx exec local/k3v9x2mq7a -- true\n" +
			"sbx exec local/k3v9x2mq7a --env MODE=test --timeout 30s -- echo hello",
		Args:              d.afterDash("REF", "sbx exec REF -- ps aux"),
		ValidArgsFunction: d.completeRefs(false, offerRunning),
	}
	f := cmd.Flags()
	f.BoolVarP(&o.stdin, "stdin", "i", false, "pass standard input to the command")
	f.BoolVarP(&o.tty, "tty", "t", false, "allocate a terminal; with -i it gets the keys")
	o.env.addFlags(f)
	f.String("workdir", "", "run it in `FOLDER` of the sandbox")
	refused := append(output.Documents(), output.NDJSON, output.CSV, output.NameOnly)
	return d.completeVerb(cmd, document{schema: "sbx.exec/v1", shape: output.ShapeFree, refuses: refused},
		func(ctx context.Context, p *output.Printer, args []string) error {
			if err := checkTexts(f, "workdir"); err != nil {
				return err
			}
			c := providers.Command{Args: args[1:], Workdir: f.Lookup("workdir").Value.String()}
			return runExec(ctx, d, p, args[0], c, o)
		})
}

func runExec(ctx context.Context, d *Deps, p *output.Printer, word string, c providers.Command, o execOptions) error {
	var err error
	if o.tty && !d.Process.Stdin.TTY {
		return fault.Usage("exec -t: standard input is no terminal").WithHint("leave -t out")
	}
	if c.Env, err = o.env.readVariables(ctx, d); err != nil {
		return err
	}
	hideValues(p, c.Env)
	return launch.Exec(
		ctx, d.Env, launch.ExecRequest{Word: word, Command: c, Connect: func(c *providers.Command) (func(), error) { return d.connectStreams(p, c, o) }},
	)
}

// connectStreams joins the command with the streams of this process: real descriptors
// are handed on as they are. The func lets go of the terminal.
func (d *Deps) connectStreams(p *output.Printer, c *providers.Command, o execOptions) (func(), error) {
	c.Stdout, c.Stderr = writerOf(d.Process.Stdout, p.Stdout()), writerOf(d.Process.Stderr, d.Process.Stderr)
	if o.stdin {
		c.Stdin = readerOf(d.Process.Stdin)
	}
	if o.watch != nil {
		c.Stdin, c.Stdout = o.watch.input(c.Stdin), o.watch.output(c.Stdout)
	}
	if !o.tty {
		return func() {}, nil
	}
	restore := func() {}
	if o.stdin { // without -i Ctrl-C has to stay a signal to sbx
		var err error
		if restore, err = d.RawTerminal(); err != nil {
			return nil, fault.New(fault.KindLauncher, "the terminal cannot be handed over: %w", err)
		}
	}
	size, resize, done := d.Size()
	c.TTY = &providers.Terminal{Term: d.Process.Getenv("TERM"), Size: size, Resize: resize}
	return func() {
		done()
		restore()
	}, nil
}

func writerOf(s process.Stream, otherwise io.Writer) io.Writer {
	if s.File != nil {
		return s.File
	}
	return otherwise
}

func readerOf(s process.Stream) io.Reader {
	if s.File != nil {
		return s.File
	}
	return s
}
