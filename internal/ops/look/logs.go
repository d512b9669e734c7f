package look

import (
	"context"
	"iter"
	"regexp"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/recall"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// LogsRequest says which lines of a sandbox's log are read.
type LogsRequest struct {
	Word      string
	Since     time.Time
	Follow    bool
	Open      bool           // with Follow and without a filter, also what an unfinished line has grown by
	Grep      *regexp.Regexp // nil = any line
	Patterns  bool           // only lines with a known pattern
	Previous  bool           // what was written before the program was started again
	Container string         // "" = the main one
	Tail      int            // the last lines of those that are chosen, with Follow of all; 0 = all
}

// LogFound is the first item of Logs: whose log is read.
type LogFound struct{ Ref sandbox.Ref }

// LogLine is an item of Logs: one line with what is known about it.
type LogLine struct {
	sandbox.LogLine
	Pattern triage.Pattern // without ID: nothing
}

// LogGap is an item of Logs: output that is not kept any more.
type LogGap struct{ Line sandbox.LogLine }

// LogsResult sums up what is not kept any more; nil = that is not known.
type LogsResult struct {
	MissingLines, MissingBytes *int64
}

// Logs reads the log of a sandbox to its end. Items are of types LogFound, LogLine, LogGap and
// error (what the provider could not read). Lines that were read before an error are valid.
func Logs(ctx context.Context, env *ops.Env, req LogsRequest, watch ops.Observer) (*LogsResult, error) {
	f, ref, err := findLog(ctx, env, req.Word)
	if kept, is := keptTail(ctx, env, req.Word, err); is {
		return kept.show(req, watch), nil
	}
	if err != nil {
		return nil, err
	}
	watch.Item(LogFound{ref})
	progress := watch.Progress("reading the log of " + ref.String())
	defer progress.Done()
	r := &logReader{
		req: req, item: watch.Item, matcher: triage.NewMatcher(), last: ring[LogLine]{size: req.heldLines()},
		result: LogsResult{MissingLines: new(int64), MissingBytes: new(int64)},
	}
	r.readLog(ctx, f, ref)
	return &r.result, nil
}

// findLog resolves the sandbox whose log is meant: a task, by its id or key, means that of its last attempt.
func findLog(ctx context.Context, e *ops.Env, word string) (*fleet.Fleet, sandbox.Ref, error) {
	if task.IsID(word) {
		return findTaskLog(ctx, e, word, nil)
	}
	f, ref, err := findSandboxLog(ctx, e, word)
	if kind := fault.KindOf(err); kind == fault.KindNotFound || kind == fault.KindUsage {
		return findTaskLog(ctx, e, word, err)
	}
	return f, ref, err
}

// findTaskLog is findLog for a task. Where the word is none, none is the error, if there is one.
func findTaskLog(ctx context.Context, e *ops.Env, word string, none error) (*fleet.Fleet, sandbox.Ref, error) {
	t, err := ops.GetTask(ctx, e, word)
	switch last := t.Last(); {
	case err != nil && none != nil:
		return nil, sandbox.Ref{}, none
	case err != nil:
		return nil, sandbox.Ref{}, err
	case last == nil || last.Sandbox == "":
		return nil, sandbox.Ref{}, fault.New(fault.KindNotFound, "%s has no sandbox: it is %s", t.ID, ops.WithDetail(string(t.State), t.Why()))
	default:
		ref := last.Ref()
		f, found, gone := e.FindOne(ctx, ref.String())
		kind := fault.KindOf(gone)
		switch {
		case gone == nil:
			return f, found.Ref(), nil
		case (kind == fault.KindNotFound || kind == fault.KindGone) && len(last.Tail) > 0: // what a provider keeps of it is no output of the program
			return f, ref, gone
		}
		return findSandboxLog(ctx, e, ref.String())
	}
}

// findSandboxLog is findLog for a sandbox. A sandbox that has ended may have left its
// log: it is named by its full reference or found in the journals, and its provider returns
// what it still has. For a sandbox that never existed the provider's answer is returned too.
func findSandboxLog(ctx context.Context, e *ops.Env, word string) (*fleet.Fleet, sandbox.Ref, error) {
	f, found, err := e.FindOne(ctx, word)
	if err == nil {
		return f, found.Ref(), nil
	}
	if kind := fault.KindOf(err); f == nil || kind != fault.KindNotFound && kind != fault.KindGone {
		return f, sandbox.Ref{}, err
	}
	ref, wrong := sandbox.ParseRef(word)
	if wrong != nil {
		return f, ref, err
	}
	if ref.Bare() {
		r, known := recall.EndOf(ctx, e, word)
		if !known {
			return f, ref, err
		}
		ref = r.Sandbox.Ref()
	}
	if !f.KeepsLogs(ref.Provider) {
		_, err = recall.WhoEnded(ctx, e, ref.String(), err)
		return f, ref, err
	}
	return f, ref, nil
}

func (r LogsRequest) hasFilters() bool { return r.Grep != nil || r.Patterns }

// providerQuery is the query to the provider. Tail counts chosen lines, so a filter applies it
// here, except while following.
func (r LogsRequest) providerQuery() providers.LogQuery {
	q := providers.LogQuery{Follow: r.Follow, Open: r.Open && !r.hasFilters(), Since: r.Since, Previous: r.Previous, Container: r.Container}
	if r.Follow || !r.hasFilters() {
		q.Tail = r.Tail
	}
	return q
}

// heldLines is how many lines have to be held back until the end of the log is known; 0 = none.
func (r LogsRequest) heldLines() int {
	if r.hasFilters() && !r.Follow {
		return r.Tail
	}
	return 0
}

// logReader reads one log.
type logReader struct {
	req     LogsRequest
	item    func(any)
	matcher *triage.Matcher
	last    ring[LogLine]
	gaps    []heldGap // before what the ring holds
	result  LogsResult
}

// heldGap is a gap before lines that are held back.
type heldGap struct {
	line  sandbox.LogLine
	added int // lines that came before it
}

func (r *logReader) readLog(ctx context.Context, f *fleet.Fleet, ref sandbox.Ref) {
	for line, err := range f.Logs(ctx, ref, r.req.providerQuery()) {
		switch {
		case err != nil:
			r.item(ops.CauseOr(ctx, err))
		case line.Gap != nil && r.last.size > 0:
			r.gaps = append(r.gaps, heldGap{line, r.last.added})
		case line.Gap != nil:
			r.reportGap(line)
		default:
			r.reportLine(line)
		}
	}
	for _, gap := range r.gaps {
		if r.last.added-gap.added < r.last.size { // otherwise all requested lines come after it
			r.reportGap(gap.line)
		}
	}
	for line := range r.last.oldestFirst() {
		r.item(line)
	}
}

// reportLine reports a line that is chosen, or holds it back.
func (r *logReader) reportLine(line sandbox.LogLine) {
	if r.req.Grep != nil && !r.req.Grep.MatchString(line.Text) {
		return
	}
	if line.OpenBytes > 0 {
		r.item(LogLine{LogLine: line}) // the whole line shows its pattern
		return
	}
	pattern, known := r.matcher.Match(line.Text)
	if r.req.Patterns && !known {
		return
	}
	if r.last.size > 0 {
		r.last.push(LogLine{line, pattern})
		return
	}
	r.item(LogLine{line, pattern})
}

// reportGap reports output that is not there.
func (r *logReader) reportGap(line sandbox.LogLine) {
	r.result.MissingLines = addKnown(r.result.MissingLines, line.Gap.Lines)
	r.result.MissingBytes = addKnown(r.result.MissingBytes, line.Gap.Bytes)
	r.item(LogGap{line})
}

func addKnown(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	sum := *a + *b
	return &sum
}

// ring keeps the last items that were added; it grows with what there is, not
// with its size.
type ring[T any] struct {
	size  int
	next  int
	added int
	items []T
}

func (r *ring[T]) push(item T) {
	r.added++
	if len(r.items) < r.size {
		r.items = append(r.items, item)
		return
	}
	r.items[r.next] = item
	r.next = (r.next + 1) % r.size
}

func (r *ring[T]) oldestFirst() iter.Seq[T] {
	return func(yield func(T) bool) {
		for i := range r.items {
			if !yield(r.items[(r.next+i)%len(r.items)]) {
				return
			}
		}
	}
}
