package publisher

import (
	"context"
	"errors"

	"sbx/internal/publish"
	"sbx/internal/task"
)

// PlanBranch reads from the remote where the task's branch is to be made.
func (p *Publisher) PlanBranch(ctx context.Context, t task.Task) (string, error) {
	target, err := p.pushTarget(t)
	if err != nil {
		return "", err
	}
	return p.o.Git.PlanBranch(ctx, target, t.Spec.Base)
}

// MakeBranch pushes the task's branch.
func (p *Publisher) MakeBranch(ctx context.Context, t task.Task) (commit string, madeNone bool, err error) {
	target, err := p.pushTarget(t)
	if err != nil {
		return "", true, err
	}
	commit, err = p.o.Git.MakeBranch(ctx, t.ID, target, t.Branch.Commit)
	return commit, err != nil && !errors.Is(err, publish.ErrInDoubt), err
}

// RemoveBranch deletes the task's branch at the remote, unless it has moved.
func (p *Publisher) RemoveBranch(ctx context.Context, t task.Task, by string) (string, error) {
	target, err := p.pushTarget(t)
	if err != nil {
		return "", err
	}
	end, err := p.o.Git.RemoveBranch(ctx, t.ID, target, by, p.o.Now())
	return string(end), err
}
