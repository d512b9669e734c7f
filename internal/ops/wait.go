package ops

import (
	"context"

	"sbx/internal/fleet"
)

// WaitRequest says which sandbox is waited for, and for what.
type WaitRequest struct {
	Word string
	Goal fleet.Goal
}

// Wait waits until a sandbox has reached the goal, and gives it as it is then.
func Wait(ctx context.Context, env *Env, req WaitRequest, watch Observer) (fleet.Judged, error) {
	f, found, err := env.FindOne(ctx, req.Word)
	if err != nil {
		return fleet.Judged{}, err
	}
	progress := watch.Progress("waiting for " + found.Ref().String() + " to be " + string(req.Goal))
	defer progress.Done()
	got, err := f.Wait(ctx, found.Ref(), req.Goal)
	if err != nil {
		return fleet.Judged{}, err
	}
	return env.JudgeRecord(got), nil
}
