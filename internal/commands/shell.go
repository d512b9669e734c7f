package commands

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// shellCommand starts the shell that people use, where the sandbox has it.
const shellCommand = "command -v bash >/dev/null && exec bash; exec sh"

func newShell(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "shell REF",
		GroupID: groupAct,
		Short:   "Open a shell inside a sandbox",
		Long: "Open a shell inside a running sandbox, within its limits: bash where it is installed,\n" +
			"else sh. It has your terminal and its TERM. `exit` ends the shell; the sandbox keeps\n" +
			"running. For one command, or without a terminal, use `sbx exec`.\n\n" +
			"Enter ~ . leaves a shell that does not answer, as in ssh; Enter ~ ~ types one ~. A sandbox\n" +
			"that shows no shell within `limits.provider_timeout` is given up (exit 7).",
		Example:           "sbx shell local/k3v9x2mq7a",
		Args:              usageArgs(oneArg("REF"), "`sbx exec REF -- COMMAND` runs a command"),
		ValidArgsFunction: d.completeRefs(false, offerRunning),
	}
	refused := append(output.Documents(), output.NDJSON, output.CSV, output.NameOnly)
	return d.completeVerb(cmd, document{schema: "sbx.shell/v1", shape: output.ShapeFree, refuses: refused},
		func(ctx context.Context, p *output.Printer, args []string) error {
			if !d.Process.Stdin.TTY {
				return fault.Usage("shell needs a terminal").WithHint("`sbx exec %s -- COMMAND` runs a command", shellescape.Quote(args[0]))
			}
			return runShell(ctx, d, p, args[0])
		})
}

// runShell opens a shell that can be left, and is given up where nothing of it is seen.
func runShell(ctx context.Context, d *Deps, p *output.Printer, word string) error {
	c, err := d.Config()
	if err != nil {
		return err
	}
	within := c.Limits.ProviderTimeout
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p.Note(connecting(word))
	timer := time.AfterFunc(within, func() {
		stop(fault.New(
			fault.KindUnavailable, "%s shows no shell within %s", word, sandbox.FormatDuration(within),
		).WithHint("`%s inspect %s` says how it is", d.Process.Name(), shellescape.Quote(word)))
	})
	defer timer.Stop()
	watch := &shellWatch{
		seen:  func() { timer.Stop() },
		leave: func() { stop(fault.New(fault.KindCanceled, "left the shell; what runs in the sandbox goes on")) },
	}
	err = runExec(ctx, d, p, word, providers.Command{Args: []string{"sh", "-c", shellCommand}}, execOptions{stdin: true, tty: true, watch: watch})
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
		return cause
	}
	return err
}

// connecting says what is waited for, and how to leave.
func connecting(word string) string { return "connecting to " + word + "; Enter ~ . leaves" }

// shellWatch looks at what goes into a shell and comes out of it.
type shellWatch struct {
	seen  func() // its first output was seen
	leave func() // Enter ~ . was typed
}

// output writes to another writer, and calls seen at the first write.
func (w *shellWatch) output(to io.Writer) io.Writer { return &firstWriter{to: to, seen: w.seen} }

type firstWriter struct {
	to   io.Writer
	once sync.Once
	seen func()
}

func (f *firstWriter) Write(b []byte) (int, error) {
	f.once.Do(f.seen)
	return f.to.Write(b)
}

// input is a reader of what is typed. It is read at once, so that a shell that takes nothing can be left.
func (w *shellWatch) input(from io.Reader) io.Reader {
	keys := &typedKeys{}
	keys.more.L = &keys.mu
	go func() { // ends with its reader
		escape := escape{fresh: true}
		buffer := make([]byte, 4096)
		for {
			n, err := from.Read(buffer)
			text, left := escape.pass(buffer[:n])
			keys.add(text)
			if left {
				w.leave()
				err = io.EOF
			}
			if err != nil {
				keys.close(err)
				return
			}
		}
	}()
	return keys
}

// escape finds Enter ~ . in what is typed. The tilde waits for the key behind it.
type escape struct {
	fresh bool // nothing was typed since Enter
	tilde bool // a tilde behind Enter waits
}

// pass is what of the keys goes on to the shell, and whether it is left.
func (e *escape) pass(keys []byte) (on []byte, left bool) {
	for _, key := range keys {
		switch {
		case e.tilde && key == '.':
			return on, true
		case e.tilde:
			if on, e.tilde = append(on, '~'), false; key != '~' {
				on = append(on, key)
			}
		case e.fresh && key == '~':
			e.tilde = true
		default:
			on = append(on, key)
		}
		e.fresh = key == '\r' || key == '\n'
	}
	return on, false
}

// typedKeys holds what was typed until it is read. A person types little.
type typedKeys struct {
	mu   sync.Mutex
	more sync.Cond
	text bytes.Buffer
	err  error // behind the text
}

func (k *typedKeys) add(text []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, _ = k.text.Write(text)
	k.more.Broadcast()
}

func (k *typedKeys) close(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = err
	k.more.Broadcast()
}

// Read is io.Reader's.
func (k *typedKeys) Read(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.text.Len() == 0 && k.err == nil {
		k.more.Wait()
	}
	if k.text.Len() == 0 {
		return 0, k.err
	}
	return k.text.Read(b)
}
