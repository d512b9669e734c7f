package ops

import (
	"context"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// FindOne finds the sandbox that a word means, and gives the fleet that was asked. Beside
// an error the fleet is nil where none could be opened.
func (e *Env) FindOne(ctx context.Context, word string) (*fleet.Fleet, sandbox.Sandbox, error) {
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

// JudgeRecord judges a sandbox by its record alone.
func (e *Env) JudgeRecord(s sandbox.Sandbox) fleet.Judged {
	now := e.Now()
	return fleet.Judged{Sandbox: s, At: now, Verdict: triage.Judge(s, triage.Signals{}, e.Thresholds(s), now)}
}

// FindCreatedLimit bounds the look for what a failed create may have made.
const FindCreatedLimit = 5 * time.Second
