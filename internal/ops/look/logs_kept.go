package look

import (
	"context"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// keptLog is the end of the output of a task's last attempt, as its record has it.
type keptLog struct {
	ref  sandbox.Ref
	tail []string
}

// keptSource names a task's record as the source of lines.
const keptSource = "the record of its task"

// keptTail is what the record of a task has of the output of a sandbox that is gone; false = nothing, or it is not gone.
func keptTail(ctx context.Context, e *ops.Env, word string, gone error) (keptLog, bool) {
	if kind := fault.KindOf(gone); kind != fault.KindNotFound && kind != fault.KindGone {
		return keptLog{}, false
	}
	t, err := ops.GetTask(ctx, e, word)
	if err != nil && !task.IsID(word) {
		return keptLog{}, false
	}
	last := t.Last()
	if err != nil || last == nil || len(last.Tail) == 0 {
		return keptLog{}, false
	}
	return keptLog{last.Ref(), last.Tail}, true
}

// show gives the lines that were asked for. How much came before them is not known.
func (k keptLog) show(req LogsRequest, watch ops.Observer) *LogsResult {
	watch.Item(LogFound{k.ref})
	gap := sandbox.MissingOutput("its sandbox is gone: this is the end of its output", sandbox.LogGap{})
	r := &logReader{req: req, item: watch.Item, matcher: triage.NewMatcher(), last: ring[LogLine]{size: req.Tail}}
	watch.Item(LogGap{gap})
	for _, text := range k.tail {
		r.reportLine(sandbox.LogLine{Text: text, Source: keptSource})
	}
	for line := range r.last.oldestFirst() {
		watch.Item(line)
	}
	return &r.result
}
