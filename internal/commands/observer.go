package commands

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"sbx/internal/ops"
	"sbx/internal/output"
)

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
func (d *Deps) observeWhileWritable(ctx context.Context, p *output.Printer, show func(item any) error) (reading context.Context, watch *observer, broken func() error) {
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

// Attended is ops.Observer's.
func (o *observer) Attended() bool { return o.d.isAttended() }

// Confirm is ops.Observer's.
func (o *observer) Confirm(ctx context.Context, q ops.Question) (bool, error) {
	if !o.Attended() {
		return false, nil
	}
	if q.Objection != "" {
		o.Warn(q.Objection)
	}
	answer, err := o.d.askTerminal(ctx, o.answers, q.Prompt)
	return err == nil && answer == q.Word, err
}

// isAttended says that a person can be asked.
func (d *Deps) isAttended() bool { return d.Process.Stdin.TTY && d.Process.Stderr.TTY }

// askTerminal puts a question to the terminal and waits for a line or the end of ctx. An
// input that ends has the empty answer.
func (d *Deps) askTerminal(ctx context.Context, answers *bufio.Reader, question string) (string, error) {
	fmt.Fprint(d.Process.Stderr, question)
	line := make(chan string, 1)
	go func() {
		text, _ := answers.ReadString('\n') // an end without an answer is the empty one
		line <- strings.TrimSpace(text)
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case text := <-line:
		return text, nil
	}
}
