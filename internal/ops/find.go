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

// judgeRecord judges a sandbox by its record alone.
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

// findCreated looks once for what a create has made whose answer leaves that open, so
// that it is not left to whoever reads the error. That it does not show proves nothing for
// good: a listing may lag behind.
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
