package ops

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

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
