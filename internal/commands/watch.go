package commands

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// watchFrame is what one look of --watch has shown: what each sandbox is doing, in a word or two.
type watchFrame map[sandbox.Ref]string

// repeatLook runs a look again and again until it is interrupted, which is how it is meant to
// end: that is no error, and the look under way shows nothing. On a terminal each look
// replaces the one before. Below it stand the time, the counts, and what has changed.
func repeatLook(ctx context.Context, p *output.Printer, every time.Duration, look func(context.Context, watchFrame) error) error {
	if err := p.Format.Refuse("--watch", output.Documents()...); err != nil {
		return err
	}
	pace := time.NewTicker(every)
	defer pace.Stop()
	w := &watch{p: p}
	for {
		p.BeginFrame()
		frame := watchFrame{}
		err := look(ctx, frame)
		if fault.KindOf(context.Cause(ctx)) == fault.KindCanceled {
			p.DropFrame()
			return nil
		}
		w.noteChanges(frame, err)
		if written := p.ShowFrame(); written != nil {
			return written
		}
		if err != nil && !canRetryLook(err) {
			return err
		}
		select {
		case <-ctx.Done():
			if fault.KindOf(context.Cause(ctx)) == fault.KindCanceled {
				return nil
			}
			return ctx.Err()
		case <-pace.C:
		}
	}
}

// canRetryLook says that the next look may go better: one provider that does not
// answer ends no watch.
func canRetryLook(err error) bool {
	return fault.Retryable(err) && !fault.Interrupted(err)
}

// watch compares the looks of one --watch.
type watch struct {
	p       *output.Printer
	before  watchFrame // of the last complete look; nil = none yet
	changed time.Time  // when the last change was seen
}

// noteChanges prints the line below a look. After a failure nothing is compared: what is missing
// may be there.
func (w *watch) noteChanges(now watchFrame, failed error) {
	at := w.p.Now().UTC()
	line := at.Format("15:04:05 UTC") + ": " + now.counts()
	switch {
	case failed != nil:
		w.p.Note(line + "; incomplete, so changes are not shown")
		return
	case w.before == nil:
		w.changed = at
	default:
		if changes := now.changesSince(w.before); changes != "" {
			line += "; " + changes
			w.changed = at
		} else {
			line += "; no change since " + w.changed.Format("15:04:05")
		}
	}
	w.before = now
	w.p.Note(line)
}

// counts is the number of sandboxes, by what they are doing: "293 sandboxes: 280 running, 13 paused".
func (f watchFrame) counts() string {
	n := map[string]int{}
	for _, word := range f {
		n[word]++
	}
	if len(f) == 0 {
		return "no sandboxes"
	}
	noun := " sandboxes: "
	if len(f) == 1 {
		noun = " sandbox: "
	}
	return strconv.Itoa(len(f)) + noun + sandbox.FormatCounts(n)
}

// changesSince names what is new, gone or doing something else; "" = nothing is.
func (f watchFrame) changesSince(before watchFrame) string {
	var added, gone, changed []string
	for ref, word := range f {
		switch was, known := before[ref]; {
		case !known:
			added = append(added, ref.String())
		case was != word:
			changed = append(changed, ref.String()+" from "+was+" to "+word)
		}
	}
	for ref := range before {
		if _, there := f[ref]; !there {
			gone = append(gone, ref.String())
		}
	}
	var parts []string
	for _, part := range []struct {
		word string
		refs []string
	}{{"new", added}, {"gone", gone}, {"changed", changed}} {
		if len(part.refs) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s: %s", len(part.refs), part.word, sandbox.FormatFirst(slices.Sorted(slices.Values(part.refs)), mostChanges)))
		}
	}
	return strings.Join(parts, "; ")
}

// mostChanges is how many sandboxes of a kind of change are named.
const mostChanges = 3
