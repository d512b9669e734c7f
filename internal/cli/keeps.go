package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"sbx/internal/commands"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// keeps is task.Keeps over the store.
type keeps struct {
	store store.DocStore
	now   func() time.Time
}

// Keep is task.Keeps'.
func (k keeps) Keep(ctx context.Context, s task.Kept, id, session string) error {
	body, err := json.Marshal(commands.KeptRow{Task: id, Session: session, ExpiresAt: s.ExpiresAt})
	if err != nil {
		return err
	}
	for {
		d, err := k.store.Doc(ctx, commands.KeptKind, s.Ref.String())
		if err != nil {
			return err
		}
		d.Body = body
		if _, err = k.store.SwapDoc(ctx, d); !errors.Is(err, store.ErrSwapped) {
			return err
		}
	}
}

// Claim is task.Keeps'. What is no longer kept is nobody's to go on in: the next sweep
// ends it.
func (k keeps) Claim(ctx context.Context, ref sandbox.Ref) (bool, error) {
	d, err := k.store.Doc(ctx, commands.KeptKind, ref.String())
	if err != nil {
		return false, err
	}
	if row, ok := commands.ReadKept(d); !ok || !row.Holds(d) {
		return false, nil
	}
	err = k.store.DropDoc(ctx, d)
	if errors.Is(err, store.ErrSwapped) {
		return false, nil
	}
	return err == nil, err
}
