package ops

import (
	"cmp"
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/task"
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
	if req.Goal == fleet.GoalEnded && fault.KindOf(err) == fault.KindNotFound {
		err = cmp.Or(unprovedEnd(ctx, f, req.Word), err)
	}
	if err != nil {
		return fleet.Judged{}, err
	}
	progress := watch.Progress("watching " + found.Ref().String() + " until it is " + string(req.Goal))
	defer progress.Done()
	got, err := f.Wait(ctx, found.Ref(), req.Goal)
	if err != nil {
		return fleet.Judged{}, err
	}
	return env.judgeRecord(got), nil
}

// unprovedEnd is why it does not prove an end that no provider finds the sandbox of a word; nil = no
// request to end it is in doubt.
func unprovedEnd(ctx context.Context, f *fleet.Fleet, word string) error {
	asked, err := f.Find(ctx, []string{word}, fleet.FindOptions{Destructive: true}) // finds what has an unacknowledged request
	if err != nil || len(asked) != 1 {
		return nil //nolint:nilerr // the error of the first search stands
	}
	return f.EndUnproved(ctx, asked[0].Ref())
}

// CreateRequest describes the sandbox that is started.
type CreateRequest struct {
	Spec sandbox.Spec
}

// Create starts one sandbox at the profile that the configuration launches at.
func Create(ctx context.Context, env *Env, req CreateRequest, watch Observer) (sandbox.Sandbox, error) {
	if err := env.mayChange(); err != nil {
		return sandbox.Sandbox{}, err
	}
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
	env.keep(history.Event{Verb: "create", Providers: []string{target.Name}, Text: "created " + made.Ref().String()})
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
		return fault.New(fault.KindUnavailable, "%w; the sandbox was created nevertheless: %s", open.Err, ref).
			WithHint("use it, or terminate it with `sbx terminate %s`", ref)
	}
	return fault.New(fault.KindUnavailable, "%w; a listing right afterwards shows no new sandbox", open.Err).
		WithHint("try again later; `%s` shows a sandbox that appears late", open.Mark.SearchCommand())
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
	Causes  []triage.Finding // what is wrong, the likeliest first, and why the others are not
	Signals triage.Signals
	Used    *SandboxUsage // nil where usage is not known
	At      time.Time
	End     *EndRecord // what the journals say of its end; nil = nothing
	// Last is what an earlier look saw of one that failed and is gone; nil = nothing.
	Last    *history.Seen
	Missing error   // why it cannot be asked: then this is what is on record
	Errors  []error // parts that could not be read
}

// Inspect reads all that can be known of one sandbox. Of one that is gone it gives what is
// on record; without a record that is an error.
func Inspect(ctx context.Context, env *Env, req InspectRequest, watch Observer) (*InspectResult, error) {
	progress := watch.Progress("inspecting " + req.Word)
	defer progress.Done()
	return env.inspect(ctx, req.Word)
}

func (e *Env) inspect(ctx context.Context, word string) (*InspectResult, error) {
	f, found, err := e.findOne(ctx, word)
	if err != nil {
		return e.inspectRecord(ctx, word, err)
	}
	s, recordErr := readInFull(ctx, f, word, found)
	if kind := fault.KindOf(recordErr); kind == fault.KindGone || kind == fault.KindNotFound {
		return e.inspectRecord(ctx, found.Ref().String(), recordErr)
	}
	r := e.judgeObservation(f.Observe(ctx, s))
	r.Errors = partErrors(ctx, r.Seen)
	if recordErr != nil && !r.Seen.IsGhost() {
		r.Errors = causeOnce(ctx, append([]error{recordErr}, r.Errors...))
	}
	r.Seen.Sandbox.Command = e.commandOf(ctx, r.Seen.Sandbox)
	if ref := s.Ref(); s.State.Ended() || s.State == sandbox.StateStopped { // where a provider keeps what was ended, it is stopped
		end, found := e.endInJournals(ctx, ref.ID, func(of sandbox.Ref, _ string) bool { return of == ref })
		if found && !s.StartedAt.After(end.At) { // else it was started again since
			r.End = &end
		}
	}
	return r, nil
}

// commandOf is the command of a sandbox: that of its task of sbx, which runs beside what the
// sandbox was started with, else that of its record; nil where neither has one.
func (e *Env) commandOf(ctx context.Context, s sandbox.Sandbox) []string {
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
func (e *Env) judgeObservation(seen fleet.Observation) *InspectResult {
	return e.judgeSignals(seen, seen.Signals(e.Thresholds(seen.Sandbox)))
}

// judgeAgain judges a sandbox anew, by another record or other signals.
func (e *Env) judgeAgain(r *InspectResult, seen fleet.Observation, sig triage.Signals) *InspectResult {
	again := e.judgeSignals(seen, sig)
	again.End, again.Last, again.Missing, again.Errors = r.End, r.Last, r.Missing, r.Errors
	return again
}

func (e *Env) judgeSignals(seen fleet.Observation, sig triage.Signals) *InspectResult {
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
func (e *Env) inspectRecord(ctx context.Context, word string, missing error) (*InspectResult, error) {
	end, described := e.whoEnded(ctx, word, missing)
	if end != nil {
		word = end.Sandbox.Ref().String()
	}
	last, unread := e.lastSeen(ctx, word)
	var s sandbox.Sandbox
	switch {
	case end != nil:
		s = end.Sandbox
		s.RawState, s.State = string(s.State), sandbox.StateUnknown
		if EndedOutcome(end.Outcome) {
			s.State, s.EndedAt = sandbox.StateTerminated, end.At
		}
	case last != nil:
		s, described = last.Sandbox, e.describeLastSeen(last, missing)
		if last.Live {
			s.RawState, s.State = string(s.State), sandbox.StateUnknown
		}
	case unread != nil && fault.KindOf(missing) == fault.KindNotFound:
		return nil, e.describeUnread(missing, unread)
	default:
		return nil, described
	}
	r := e.judgeObservation(e.recordedObservation(ctx, s, end, last))
	r.End, r.Last, r.Missing = end, last, described
	if unread != nil {
		r.Errors = append(r.Errors, unread)
	}
	r.recallVerdict()
	return r, nil
}

// recordedObservation is what is on record of a sandbox that is gone.
func (e *Env) recordedObservation(ctx context.Context, s sandbox.Sandbox, end *EndRecord, last *history.Seen) fleet.Observation {
	seen := goneObservation(s)
	var lines []string
	if last != nil {
		lines, seen.Sandbox.Exit = last.Logs, last.Sandbox.Exit
		if last.Usage != nil {
			seen.Usage.Got, seen.Usage.Err = []sandbox.Usage{*last.Usage}, nil
		}
	}
	if stored := e.storedSamples(ctx, s); len(stored) > len(seen.Usage.Got) {
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
	if causes := recalled(r.Last); len(causes) > 0 && (r.Last.Live || len(r.Causes) == 0) {
		r.Causes = causes
	}
	if last := r.Last; last != nil && last.Live && r.Seen.Sandbox.State == sandbox.StateUnknown {
		r.Verdict = triage.Verdict{Stuck: sandbox.Unknown, Activity: sandbox.Unknown, Cause: last.Cause, Confidence: sandbox.ConfidenceUnknown, Reason: "when it was last seen it was " + last.Reason}
		if len(r.Causes) > 0 {
			r.Verdict.Confidence = r.Causes[0].Confidence
		}
	}
}
