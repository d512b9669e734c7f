package commands

import (
	"bufio"
	"context"

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

func (d *Deps) observe(p *output.Printer, items func(item any)) *observer {
	return &observer{Printer: p, d: d, items: items, answers: bufio.NewReader(d.Process.Stdin)}
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
func (o *observer) Attended() bool { return o.d.attended() }

// Confirm is ops.Observer's.
func (o *observer) Confirm(ctx context.Context, q ops.Question) (bool, error) {
	if !o.Attended() {
		return false, nil
	}
	if q.Objection != "" {
		o.Warn(q.Objection)
	}
	answer, err := o.d.ask(ctx, o.answers, q.Prompt)
	return err == nil && answer == q.Word, err
}
