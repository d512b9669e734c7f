package look

import (
	"context"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// InspectRequest says which sandbox is inspected.
type InspectRequest struct {
	Word string
}

// InspectResult is all that is known of one sandbox, and what the rules make of it.
type InspectResult struct {
	Seen    fleet.Observation // with its record
	Verdict triage.Verdict
	Flags   []triage.Flag
	Causes  []triage.Finding // what is wrong, the likeliest first, and why the others are not
	Signals triage.Signals
	Used    *SandboxUsage // nil where usage is not known
	At      time.Time
	End     *ops.EndRecord // what the journals say of its end; nil = nothing
	// Last is what an earlier look saw of one that failed and is gone; nil = nothing.
	Last    *history.Seen
	Missing error   // why it cannot be asked: then this is what is on record
	Errors  []error // parts that could not be read
}

// Inspect reads all that can be known of one sandbox. Of one that is gone it gives what is
// on record; without a record that is an error.
func Inspect(ctx context.Context, env *ops.Env, req InspectRequest, watch ops.Observer) (*InspectResult, error) {
	progress := watch.Progress("inspecting " + req.Word)
	defer progress.Done()
	return inspect(ctx, env, req.Word)
}

func inspect(ctx context.Context, e *ops.Env, word string) (*InspectResult, error) {
	f, found, err := e.FindOne(ctx, word)
	if err != nil {
		return inspectRecord(ctx, e, word, err)
	}
	s, recordErr := readInFull(ctx, f, word, found)
	if kind := fault.KindOf(recordErr); kind == fault.KindGone || kind == fault.KindNotFound {
		return inspectRecord(ctx, e, found.Ref().String(), recordErr)
	}
	r := judgeObservation(e, f.Observe(ctx, s))
	r.Errors = ops.PartErrors(ctx, r.Seen)
	if recordErr != nil && !r.Seen.IsGhost() {
		r.Errors = ops.CauseOnce(ctx, append([]error{recordErr}, r.Errors...))
	}
	r.Seen.Sandbox.Command = commandOf(ctx, e, r.Seen.Sandbox)
	if ref := s.Ref(); s.State.Ended() || s.State == sandbox.StateStopped { // where a provider keeps what was ended, it is stopped
		end, found := e.EndInJournals(ctx, ref.ID, func(of sandbox.Ref, _ string) bool { return of == ref })
		if found && !s.StartedAt.After(end.At) { // else it was started again since
			r.End = &end
		}
	}
	return r, nil
}

// commandOf is the command of a sandbox: that of its task of sbx, which runs beside what the
// sandbox was started with, else that of its record; nil where neither has one.
func commandOf(ctx context.Context, e *ops.Env, s sandbox.Sandbox) []string {
	command := s.Command
	if !task.IsID(s.TaskID) {
		return command
	}
	_ = e.ReadTasks(func(l task.Ledger) error { // a store that cannot be read has no command
		t, err := l.Read(ctx, s.TaskID)
		if err == nil {
			command = t.Spec.Command
		}
		return err
	})
	return command
}

// readInFull reads the record again where it comes from a listing: one sandbox is
// described better than many.
func readInFull(ctx context.Context, f *fleet.Fleet, word string, found sandbox.Sandbox) (sandbox.Sandbox, error) {
	if ref, err := sandbox.ParseRef(word); err == nil && !ref.Bare() {
		return found, nil
	}
	s, err := f.Get(ctx, found.Ref())
	if err != nil {
		return found, err
	}
	return s, nil
}

// judgeObservation applies every rule to what was seen of a sandbox.
func judgeObservation(e *ops.Env, seen fleet.Observation) *InspectResult {
	return judgeSignals(e, seen, seen.Signals(e.Thresholds(seen.Sandbox)))
}

// judgeAgain judges a sandbox anew, by another record or other signals.
func judgeAgain(e *ops.Env, r *InspectResult, seen fleet.Observation, sig triage.Signals) *InspectResult {
	again := judgeSignals(e, seen, sig)
	again.End, again.Last, again.Missing, again.Errors = r.End, r.Last, r.Missing, r.Errors
	return again
}

func judgeSignals(e *ops.Env, seen fleet.Observation, sig triage.Signals) *InspectResult {
	t := e.Thresholds(seen.Sandbox)
	r := &InspectResult{
		Seen: seen, Verdict: triage.Judge(seen.Sandbox, sig, t, e.Now()), At: e.Now(), Signals: sig,
		Flags: triage.Flags(seen.Sandbox, sig, t, e.Now()),
	}
	r.Causes = triage.Causes(r.Verdict, seen.Sandbox, sig, t, e.Now())
	if len(seen.Usage.Got) > 0 {
		used := UsageOf(seen.Sandbox, seen.Usage.Got, t, r.Verdict)
		r.Used = &used
	}
	return r
}

// inspectRecord gives what is on record of a sandbox that is not there: who ended it, and what an
// earlier look saw of it. Missing is the error of the look, whose kind stays that of the answer.
func inspectRecord(ctx context.Context, e *ops.Env, word string, missing error) (*InspectResult, error) {
	end, described := e.FindEnd(ctx, word, missing)
	if end != nil {
		word = end.Sandbox.Ref().String()
	}
	last, unread := e.LastSeen(ctx, word)
	var s sandbox.Sandbox
	switch {
	case end != nil:
		s = end.Sandbox
		s.RawState, s.State = string(s.State), sandbox.StateUnknown
		if ops.EndedOutcome(end.Outcome) {
			s.State, s.EndedAt = sandbox.StateTerminated, end.At
		}
	case last != nil:
		s, described = last.Sandbox, e.DescribeLastSeen(last, missing)
		if last.Live {
			s.RawState, s.State = string(s.State), sandbox.StateUnknown
		}
	case unread != nil && fault.KindOf(missing) == fault.KindNotFound:
		return nil, e.DescribeUnread(missing, unread)
	default:
		return nil, described
	}
	r := judgeObservation(e, recordedObservation(ctx, e, s, end, last))
	r.End, r.Last, r.Missing = end, last, described
	if unread != nil {
		r.Errors = append(r.Errors, unread)
	}
	r.recallVerdict()
	return r, nil
}

// recordedObservation is what is on record of a sandbox that is gone.
func recordedObservation(ctx context.Context, e *ops.Env, s sandbox.Sandbox, end *ops.EndRecord, last *history.Seen) fleet.Observation {
	seen := goneObservation(s)
	var lines []string
	if last != nil {
		lines, seen.Sandbox.Exit = last.Logs, last.Sandbox.Exit
		if last.Usage != nil {
			seen.Usage.Got, seen.Usage.Err = []sandbox.Usage{*last.Usage}, nil
		}
	}
	if stored := storedSamples(ctx, e, s); len(stored) > len(seen.Usage.Got) {
		seen.Usage.Got, seen.Usage.Err = stored, nil
	}
	if end != nil && len(end.Logs) > 0 {
		lines = end.Logs
	}
	for _, text := range lines {
		seen.Logs.Got = append(seen.Logs.Got, sandbox.LogLine{Text: text})
	}
	return seen
}

// recallVerdict takes the causes that an earlier look found where the record proves none. Of one that
// vanished while it was in trouble, the verdict is that of the look.
func (r *InspectResult) recallVerdict() {
	if causes := ops.RecalledCauses(r.Last); len(causes) > 0 && (r.Last.Live || len(r.Causes) == 0) {
		r.Causes = causes
	}
	if last := r.Last; last != nil && last.Live && r.Seen.Sandbox.State == sandbox.StateUnknown {
		r.Verdict = triage.Verdict{Stuck: sandbox.Unknown, Activity: sandbox.Unknown, Cause: last.Cause, Confidence: sandbox.ConfidenceUnknown, Reason: "when it was last seen it was " + last.Reason}
		if len(r.Causes) > 0 {
			r.Verdict.Confidence = r.Causes[0].Confidence
		}
	}
}
