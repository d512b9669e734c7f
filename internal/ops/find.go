package ops

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// findOne finds the sandbox that a word means, and gives the fleet that was asked. Beside
// an error the fleet is nil where none could be opened.
func (e *Env) findOne(ctx context.Context, word string) (*fleet.Fleet, sandbox.Sandbox, error) {
	f, err := e.Fleet(ctx)
	if err != nil {
		return nil, sandbox.Sandbox{}, err
	}
	found, err := f.Find(ctx, []string{word}, fleet.FindOptions{})
	if err != nil {
		return f, sandbox.Sandbox{}, err
	}
	return f, found[0], nil
}

func (e *Env) judgeRecord(s sandbox.Sandbox) fleet.Judged {
	return fleet.Judged{Sandbox: s, Verdict: triage.Judge(s, triage.Signals{}, e.Thresholds(s), e.Now())}
}

// WaitRequest says which sandbox is waited for, and for what.
type WaitRequest struct {
	Word string
	Goal fleet.Goal
}

// Wait waits until a sandbox has reached the goal, and gives it as it is then.
func Wait(ctx context.Context, env *Env, req WaitRequest, watch Observer) (fleet.Judged, error) {
	f, found, err := env.findOne(ctx, req.Word)
	if err != nil {
		return fleet.Judged{}, err
	}
	progress := watch.Progress("waiting for " + found.Ref().String() + " to be " + string(req.Goal))
	defer progress.Done()
	got, err := f.Wait(ctx, found.Ref(), req.Goal)
	if err != nil {
		return fleet.Judged{}, err
	}
	return env.judgeRecord(got), nil
}

// CreateRequest describes the sandbox that is started.
type CreateRequest struct {
	Spec sandbox.Spec
}

// Create starts one sandbox at the profile that the configuration launches at.
func Create(ctx context.Context, env *Env, req CreateRequest, watch Observer) (sandbox.Sandbox, error) {
	c, err := env.Config()
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	target, err := c.LaunchTarget()
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	f, err := env.Only(ctx, target.Name) // --provider and `use` choose what is looked at, `launch` may be another
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	progress := watch.Progress("creating a sandbox at " + target.Name)
	defer progress.Done()
	made, err := f.Create(ctx, target.Name, req.Spec)
	if err != nil {
		return sandbox.Sandbox{}, findCreated(ctx, f, err)
	}
	env.recordCreated(ctx, watch, f, made)
	return made, nil
}

// findCreatedLimit bounds the look for what a failed create may have made.
const findCreatedLimit = 5 * time.Second

// findCreated searches once for the sandbox of a create whose answer leaves open whether it
// made one. Finding none proves nothing: a listing may lag behind.
func findCreated(ctx context.Context, f *fleet.Fleet, err error) error {
	open, ok := errors.AsType[*providers.OpenCreateError](err)
	if !ok || ctx.Err() != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, findCreatedLimit)
	defer stop()
	found, lookErr := f.Marked(ctx, open.Mark)
	switch {
	case lookErr != nil:
		return err
	case len(found) > 0:
		ref := found[0].Ref().String()
		return fault.New(fault.KindUnavailable, "%w; it was created all the same: %s", open.Err, ref).
			WithHint("use it, or end it with `sbx terminate %s`", ref)
	}
	return fault.New(fault.KindUnavailable, "%w; a look right after it finds nothing that it made", open.Err).
		WithHint("try again later; `%s` shows what may appear late", open.Mark.SearchCommand())
}

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
	f, found, err := env.findOne(ctx, req.Word)
	if err != nil {
		return env.inspectRecord(ctx, req.Word, err)
	}
	s, recordErr := readInFull(ctx, f, req.Word, found)
	if kind := fault.KindOf(recordErr); kind == fault.KindGone || kind == fault.KindNotFound {
		return env.inspectRecord(ctx, found.Ref().String(), recordErr)
	}
	r := env.judgeObservation(f.Observe(ctx, s))
	r.Errors = partErrors(ctx, r.Seen)
	if recordErr != nil {
		r.Errors = causeOnce(ctx, append([]error{recordErr}, r.Errors...))
	}
	if ref := s.Ref(); s.State.Ended() {
		if end, found := env.endInJournals(ctx, ref.ID, func(of sandbox.Ref, _ string) bool { return of == ref }); found {
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
	return &InspectResult{Seen: seen, Verdict: e.judgeRecord(s).Verdict, At: e.Now(), End: end, Missing: missing}, nil
}
