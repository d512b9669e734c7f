package look

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/ops"
	"sbx/internal/ops/recall"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// InspectResult is all that is known of one sandbox, and what the rules make of it.
type InspectResult struct {
	Seen    fleet.Observation // with its record
	Verdict triage.Verdict
	Flags   []triage.Flag
	Causes  []triage.Finding // what is wrong, the likeliest first, and why the others are not
	Signals triage.Signals
	Used    *SandboxUsage // nil where usage is not known
	At      time.Time
	End     *recall.EndRecord // what the journals say of its end; nil = nothing
	// Last is what an earlier look saw of one that failed and is gone; nil = nothing.
	Last    *history.Seen
	Missing error   // why it cannot be asked: then this is what is on record
	Errors  []error // parts that could not be read
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

// judgeObservation judges a sandbox by what was seen of it.
func judgeObservation(e *ops.Env, seen fleet.Observation) *InspectResult {
	r := &InspectResult{Seen: seen}
	r.judge(e, seen.Signals(e.Thresholds(seen.Sandbox)))
	return r
}

// judge applies every rule to what was seen of a sandbox: the one judgement of one sandbox.
func (r *InspectResult) judge(e *ops.Env, sig triage.Signals) {
	s, t, now := r.Seen.Sandbox, e.Thresholds(r.Seen.Sandbox), e.Now()
	r.At, r.Signals, r.Used = now, sig, nil
	r.Verdict, r.Flags = triage.Judge(s, sig, t, now), triage.Flags(s, sig, t, now)
	r.Causes = triage.Causes(r.Verdict, s, sig, t, now)
	if got := r.Seen.Usage.Got; len(got) > 0 {
		r.Used = new(UsageOf(s, got, t, r.Verdict))
	}
}

// inspectRecord gives what is on record of a sandbox that is not there: who ended it, and what an
// earlier look saw of it. Missing is the error of the look, whose kind stays that of the answer.
func inspectRecord(ctx context.Context, e *ops.Env, word string, missing error) (*InspectResult, error) {
	end, described := recall.FindEnd(ctx, e, word, missing)
	if end != nil {
		word = end.Sandbox.Ref().String()
	}
	last, unread := recall.LastSeen(ctx, e, word)
	var s sandbox.Sandbox
	switch {
	case end != nil:
		s = end.Sandbox
		s.RawState, s.State = string(s.State), sandbox.StateUnknown
		if recall.EndedOutcome(end.Outcome) {
			s.State, s.EndedAt = sandbox.StateTerminated, end.At
		}
	case last != nil:
		s, described = last.Sandbox, recall.DescribeLastSeen(e, last, missing)
		if last.Live {
			s.RawState, s.State = string(s.State), sandbox.StateUnknown
		}
	case unread != nil && fault.KindOf(missing) == fault.KindNotFound:
		return nil, recall.DescribeUnread(e, missing, unread)
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
func recordedObservation(ctx context.Context, e *ops.Env, s sandbox.Sandbox, end *recall.EndRecord, last *history.Seen) fleet.Observation {
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
	if causes := recall.SeenCauses(r.Last); len(causes) > 0 && (r.Last.Live || len(r.Causes) == 0) {
		r.Causes = causes
	}
	if last := r.Last; last != nil && last.Live && r.Seen.Sandbox.State == sandbox.StateUnknown {
		r.Verdict = triage.Verdict{
			Stuck: sandbox.Unknown, Activity: sandbox.Unknown, Cause: last.Cause, Confidence: sandbox.ConfidenceUnknown,
			Reason: "when it was last seen it was " + last.Reason,
		}
		if len(r.Causes) > 0 {
			r.Verdict.Confidence = r.Causes[0].Confidence
		}
	}
}

// goneObservation is what can be seen of a sandbox that is not there.
func goneObservation(s sandbox.Sandbox) fleet.Observation {
	gone := fault.New(fault.KindNotFound, "it is gone")
	seen := fleet.Observation{Sandbox: s}
	seen.Usage.Err, seen.Health.Err, seen.Events.Err = gone, gone, gone
	return seen
}

// storedSamples are the samples of a sandbox that earlier looks have kept, oldest first. What was
// sampled after its end says nothing about it.
func storedSamples(ctx context.Context, e *ops.Env, s sandbox.Sandbox) []sandbox.Usage {
	st, err := e.Store(false)
	if err != nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, e.Process.TimeScale.Limit(ops.StoreTimeout))
	defer stop()
	looks, err := history.Looks(ctx, st, s.Provider, e.Now().Add(-history.Rules().Keep))
	if errors.Join(err, st.Close()) != nil {
		return nil
	}
	var samples []sandbox.Usage
	for _, l := range looks {
		if u, known := l.Usage[s.ID]; known && (s.EndedAt.IsZero() || !u.At.After(s.EndedAt)) {
			samples = append(samples, u)
		}
	}
	return samples[max(0, len(samples)-maxStored):]
}

// maxStored is how many stored samples of a sandbox are judged.
const maxStored = 60
