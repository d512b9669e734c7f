package ops

import (
	"context"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
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
	Used    *SandboxUsage // nil where usage is not known
	At      time.Time
	End     *EndRecord // what the journals say of its end; nil = nothing
	Missing error      // why it cannot be asked: then this is what is on record
	Errors  []error    // parts that could not be read
}

// Inspect reads all that can be known of one sandbox. Of one that is gone it gives what is
// on record; without a record that is an error.
func Inspect(ctx context.Context, env *Env, req InspectRequest, watch Observer) (*InspectResult, error) {
	progress := watch.Progress("inspecting " + req.Word)
	defer progress.Done()
	f, found, err := env.FindOne(ctx, req.Word)
	if err != nil {
		return env.inspectRecord(ctx, req.Word, err)
	}
	s, recordErr := readInFull(ctx, f, req.Word, found)
	if kind := fault.KindOf(recordErr); kind == fault.KindGone || kind == fault.KindNotFound {
		return env.inspectRecord(ctx, found.Ref().String(), recordErr)
	}
	r := env.judgeObservation(f.Observe(ctx, s))
	r.Errors = PartErrors(ctx, r.Seen)
	if recordErr != nil {
		r.Errors = CauseOnce(ctx, append([]error{recordErr}, r.Errors...))
	}
	if ref := s.Ref(); s.State.Ended() {
		if end, found := env.EndInJournals(ctx, ref.ID, func(of sandbox.Ref, _ string) bool { return of == ref }); found {
			r.End = &end
		}
	}
	return r, nil
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
func (e *Env) judgeObservation(seen fleet.Observation) *InspectResult {
	t := e.Thresholds(seen.Sandbox)
	r := &InspectResult{
		Seen: seen, Verdict: seen.Judge(t, e.Now()), At: e.Now(),
		Flags: triage.Flags(seen.Sandbox, seen.Signals(t), t, e.Now()),
	}
	if len(seen.Usage.Got) > 0 {
		used := UsageOf(seen.Sandbox.Ref(), seen.Usage.Got, t, r.Verdict)
		r.Used = &used
	}
	return r
}

// inspectRecord gives what is on record of a sandbox that is not there. Missing is the
// error of the look, whose kind stays that of the answer.
func (e *Env) inspectRecord(ctx context.Context, word string, missing error) (*InspectResult, error) {
	end, missing := e.WhoEnded(ctx, word, missing)
	if end == nil {
		return nil, missing
	}
	s := end.Sandbox
	s.RawState, s.State = string(s.State), sandbox.StateUnknown
	if EndedOutcome(end.Outcome) {
		s.State, s.EndedAt = sandbox.StateTerminated, end.At
	}
	seen := fleet.Observation{Sandbox: s}
	gone := fault.New(fault.KindNotFound, "it is gone")
	seen.Usage.Err, seen.Health.Err, seen.Events.Err = gone, gone, gone
	for _, text := range end.Logs {
		seen.Logs.Got = append(seen.Logs.Got, sandbox.LogLine{Text: text})
	}
	return &InspectResult{Seen: seen, Verdict: e.JudgeRecord(s).Verdict, At: e.Now(), End: end, Missing: missing}, nil
}
