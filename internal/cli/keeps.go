package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// keptKind is under what the sandboxes that outlive their tasks are kept.
const keptKind = "kept"

// keeps is task.Keeps over the store.
type keeps struct {
	store store.DocStore
	now   func() time.Time
}

// kept is one row.
type kept struct {
	Task      string    `json:"task"`
	Session   string    `json:"session,omitempty"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Keep is task.Keeps'.
func (k keeps) Keep(ctx context.Context, s task.Kept, id, session string) error {
	body, err := json.Marshal(kept{Task: id, Session: session, ExpiresAt: s.ExpiresAt})
	if err != nil {
		return err
	}
	for {
		d, err := k.store.Doc(ctx, keptKind, s.Ref.String())
		if err != nil {
			return err
		}
		d.Body = body
		if _, err = k.store.SwapDoc(ctx, d); !errors.Is(err, store.ErrSwapped) {
			return err
		}
	}
}

// Claim is task.Keeps'.
func (k keeps) Claim(ctx context.Context, ref sandbox.Ref) (bool, error) {
	d, err := k.store.Doc(ctx, keptKind, ref.String())
	if err != nil || d.Version == 0 {
		return false, err
	}
	err = k.store.DropDoc(ctx, d)
	if errors.Is(err, store.ErrSwapped) {
		return false, nil
	}
	return err == nil, err
}
