package commands

import (
	"context"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
)

// inFull reads the record again where it comes from a listing: one sandbox is
// described better than many.
func inFull(ctx context.Context, f *fleet.Fleet, word string, found sandbox.Sandbox) (sandbox.Sandbox, error) {
	if ref, err := sandbox.ParseRef(word); err == nil && !ref.Bare() {
		return found, nil
	}
	s, err := f.Get(ctx, found.Ref())
	if err != nil {
		return found, err
	}
	return s, nil
}
