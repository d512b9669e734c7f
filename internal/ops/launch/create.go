package launch

import (
	"context"
	"errors"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/ops"
	"sbx/internal/ops/recall"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// WaitRequest says which sandbox is waited for, and for what.
type WaitRequest struct {
	Word string
	Goal fleet.Goal
}

// Wait waits until a sandbox has reached the goal, and gives it as it is then.
func Wait(ctx context.Context, env *ops.Env, req WaitRequest, watch ops.Observer) (fleet.Judged, error) {
	f, found, err := env.FindOne(ctx, req.Word)
	if req.Goal == fleet.GoalEnded && fault.KindOf(err) == fault.KindNotFound {
		if asked, is := requestedEnd(ctx, f, req.Word); is {
			return env.JudgeRecord(asked), f.EndUnproved(ctx, asked.Ref())
		}
		if r, _ := recall.FindEnd(ctx, env, req.Word, err); r != nil && (r.Outcome == sandbox.OutcomeVerified || r.Outcome == sandbox.OutcomeAlreadyGone) {
			r.Sandbox.State, r.Sandbox.RawState, r.Sandbox.EndedAt = sandbox.StateTerminated, "gone", r.At
			return env.JudgeRecord(r.Sandbox), nil
		}
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
	return env.JudgeRecord(got), nil
}

// requestedEnd is a sandbox that no provider finds and that an earlier request was to end.
func requestedEnd(ctx context.Context, f *fleet.Fleet, word string) (sandbox.Sandbox, bool) {
	asked, err := f.Find(ctx, []string{word}, fleet.FindOptions{Destructive: true})
	if err != nil || len(asked) != 1 {
		return sandbox.Sandbox{}, false // the error of the first search stands
	}
	asked[0].State, asked[0].RawState = sandbox.StateTerminated, "gone"
	return asked[0], true
}

// CreateRequest describes the sandbox that is started.
type CreateRequest struct {
	Spec sandbox.Spec
}

// Create starts one sandbox at the profile that the configuration launches at.
func Create(ctx context.Context, env *ops.Env, req CreateRequest, watch ops.Observer) (sandbox.Sandbox, error) {
	if err := env.MayChange(); err != nil {
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
	env.RecordCreated(ctx, watch, f, made)
	env.KeepConclusion(history.Event{Verb: "create", Providers: []string{target.Name}, Text: "created " + made.Ref().String()})
	return made, nil
}

// findCreated searches once for the sandbox of a create whose answer leaves open whether it
// made one. Finding none proves nothing: a listing may lag behind.
func findCreated(ctx context.Context, f *fleet.Fleet, err error) error {
	open, ok := errors.AsType[*providers.OpenCreateError](err)
	if !ok || ctx.Err() != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, ops.FindCreatedLimit)
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
