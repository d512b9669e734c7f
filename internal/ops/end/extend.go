package end

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/providers"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// ExtendRequest is what is asked of a later end by name.
type ExtendRequest struct {
	Words      []string
	Typed      []string      // those of Words that a person typed; a pipe brought the others
	TTL        time.Duration // from now on; 0 = until Until
	Until      time.Time
	Production []string // production profiles that the operator has named
	Yes        bool     // extend many without being asked
	Unattended bool     // nobody can be asked
	Shown      bool     // it is planned alone
	Line       []string // the command line that was typed, quoted for a shell
}

// ExtendResult is what an extension has reached for one sandbox. Its outcome is verified where another read has shown
// a later end, accepted where none did, and skipped where nothing was sent.
type ExtendResult struct {
	sandbox.Ending

	Asked    time.Time
	Before   time.Time     // when it would have ended; zero = it was not read, or has no end
	Until    time.Time     // when it ends, by the last read; zero = that is not known
	Left     time.Duration // until then, by its provider's clock
	IdleStop time.Duration // it stops before, after this time without activity; 0 = it does not
}

// PlanExtend plans to move the ends of the sandboxes that words name; it changes nothing. Do reads and judges each again,
// requests once, and reads what came of it. Items are of types RunStarted, error (a word that named nothing) and
// ExtendResult. The guards are those of terminate: what is extended by mistake costs money. What protects a sandbox from
// its end does not keep it from a later one.
func PlanExtend(ctx context.Context, env *ops.Env, req ExtendRequest) (*ops.Act, error) {
	if err := env.MayChange(); err != nil && !req.Shown {
		return nil, err
	}
	x := &extension{ttl: req.TTL, at: req.Until, termination: termination{
		env: env, id: env.RunID(), effect: safety.Extending(),
		req: TerminateRequest{
			Words: req.Words, Typed: req.Typed, Production: req.Production, Yes: req.Yes, Unattended: req.Unattended, Shown: req.Shown, Line: req.Line,
		},
	}}
	x.sort = x.plannedExtensions
	return x.plan(ctx, &ops.Act{Verb: runs.VerbExtend, Execute: x.execute})
}

// extension is one run that moves the ends of sandboxes.
type extension struct {
	termination

	ttl time.Duration
	at  time.Time
}

// now is the time by the clock of a provider.
func (x *extension) now(profile string) time.Time {
	ahead, _ := x.fleet.Skew(profile)
	return x.env.Now().Add(ahead)
}

// until is when a sandbox is to end, by the clock of its provider.
func (x *extension) until(profile string) time.Time {
	if x.ttl > 0 {
		return x.now(profile).Add(x.ttl)
	}
	return x.at
}

// refusal is why the end of a sandbox stays where it is; nil = a later one may be requested. A task ends its sandbox
// itself, whatever the limit of its provider.
func (x *extension) refusal(s sandbox.Sandbox, until time.Time) error {
	if err := x.fleet.CanExtend(s.Provider); err != nil {
		return err
	}
	if why := x.held.Holds(s, false); why != "" {
		return fault.New(fault.KindRefused, "it ends with its task, whatever its limit: %s", strings.TrimPrefix(why, "protected: "))
	}
	return providers.CheckExtension(s, until)
}

// plannedExtensions sorts the targets by what would become of their ends.
func (x *extension) plannedExtensions() (selected, kept []ops.PlannedEnd) {
	selected, kept = []ops.PlannedEnd{}, []ops.PlannedEnd{}
	for _, s := range x.targets {
		until := x.until(s.Provider)
		if err := x.refusal(s, until); err != nil {
			kept = append(kept, ops.PlannedEnd{Ref: s.Ref(), Reason: err.Error(), Sandbox: s})
			continue
		}
		selected = append(selected, ops.PlannedEnd{Ref: s.Ref(), Reason: moveText(s.ExpiresAt, until), Sandbox: s})
	}
	return selected, kept
}

// moveText writes two ends: "2026-11-20T12:00:00Z -> 2026-11-20T13:00:00Z".
func moveText(before, after time.Time) string {
	return "its end: " + before.UTC().Format(time.RFC3339) + " -> " + after.UTC().Format(time.RFC3339)
}

func (x *extension) execute(ctx context.Context, watch ops.Observer, allowed ops.Allowed) ops.ActResult {
	if err := x.narrow(ctx, allowed); err != nil {
		return ops.NotBegun(x.id, err)
	}
	watch.Item(ops.RunStarted{RunID: x.id})
	for _, err := range x.lost {
		watch.Item(err)
	}
	if len(x.targets) == 0 {
		return ops.ActResult{RunID: x.id}
	}
	progress := watch.Progress("extending sandboxes")
	defer progress.Done()
	run := x.env.EndsOpener(watch, runs.Origin{ID: x.id, Verb: runs.VerbExtend, Reason: "named by hand"})(ctx, x.targets)
	defer run.FinishEnds(context.WithoutCancel(ctx))
	began := time.Now()
	results := make([]ExtendResult, len(x.targets))
	var wg sync.WaitGroup
	for i, s := range x.targets {
		wg.Go(func() { results[i] = x.extendOne(ctx, run, s) })
	}
	wg.Wait()
	done := ops.ActResult{RunID: x.id, Took: time.Since(began)}
	for _, r := range results {
		done.Endings = append(done.Endings, r.Ending)
		watch.Item(r)
	}
	done.Err = partlyRefused(results)
	return done
}

// partlyRefused is fault.KindPartial where some ends were refused and others moved: that the run was refused is not said
// of it. Nil = the errors of the items decide.
func partlyRefused(results []ExtendResult) error {
	var refused []error
	for _, r := range results {
		if r.Err != nil {
			refused = append(refused, r.Err)
		}
	}
	joined := errors.Join(refused...)
	if fault.KindOf(joined) != fault.KindRefused || len(refused) == len(results) {
		return nil
	}
	return &fault.Error{Kind: fault.KindPartial, Err: joined}
}

// extendOne asks for the later end of one sandbox. The intent is on record before the request, and the two ends with the
// outcome.
func (x *extension) extendOne(ctx context.Context, run *runs.Run, s sandbox.Sandbox) ExtendResult {
	began, ref := time.Now(), s.Ref()
	r := ExtendResult{Ending: sandbox.Ending{Ref: ref}, Asked: x.until(ref.Provider), Before: s.ExpiresAt, Until: s.ExpiresAt}
	var done fleet.Extension
	if r.Err = x.refusal(s, r.Asked); r.Err == nil {
		intent := runs.IntentOf(s, false)
		intent.Action, intent.Reason = runs.ActExtend, moveText(r.Before, r.Asked)
		_ = run.Intent(intent) // what is lost is warned of
		done, r.Err = x.fleet.Extend(ctx, ref, r.Asked)
	}
	if done.Before.ID != "" {
		r.Before, r.Until = done.Before.ExpiresAt, done.After.ExpiresAt
	}
	if r.IdleStop = done.After.IdleStop; !r.Until.IsZero() {
		r.Left = max(0, r.Until.Sub(x.now(ref.Provider)))
	}
	r.Outcome, r.Duration = extendOutcome(r.Err, done), time.Since(began)
	if r.Err != nil {
		r.Err = fault.Placed(r.Err, "", runs.VerbExtend+" "+ref.String())
		r.Reason = r.Err.Error()
	}
	for _, seen := range []struct {
		what string
		at   time.Time
	}{{"end before", r.Before}, {"end", r.Until}} {
		if !seen.at.IsZero() {
			r.Evidence = append(r.Evidence, sandbox.Evidence{What: seen.what, Value: seen.at.UTC().Format(time.RFC3339), Source: ref.Provider, At: x.env.Now()})
		}
	}
	_ = run.Result(r.Ending) // as above
	return r
}

// extendOutcome is verified for a later end that a read has shown, also one that is not as late as was asked.
func extendOutcome(err error, done fleet.Extension) sandbox.Outcome {
	switch kind := fault.KindOf(err); {
	case err == nil, kind == fault.KindPartial:
		return sandbox.OutcomeVerified
	case kind == fault.KindUnverified:
		return sandbox.OutcomeAccepted
	case done.Before.ID == "" && kind == fault.KindRefused:
		return sandbox.OutcomeSkipped
	case done.Before.ID == "" && kind == fault.KindCanceled:
		return sandbox.OutcomeNotAttempted
	}
	return sandbox.OutcomeFailed
}
