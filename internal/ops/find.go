package ops

import (
	"context"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/task"
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
		return f, sandbox.Sandbox{}, e.hintTask(ctx, word, err)
	}
	return f, found[0], nil
}

// hintTask names the verb of tasks where a word that names no sandbox is the key of one.
func (e *Env) hintTask(ctx context.Context, word string, none error) error {
	if fault.KindOf(none) != fault.KindNotFound || task.IsID(word) || strings.Contains(word, "/") {
		return none
	}
	if t, err := GetTask(ctx, e, word); err != nil || !t.HasKey(word) {
		return none
	}
	return fault.New(fault.KindNotFound, "%w", none).WithHint("%s is the key of a task: `%s tasks show %s`", word, e.Process.Name(), word)
}

// JudgeRecord judges a sandbox by its record alone.
func (e *Env) JudgeRecord(s sandbox.Sandbox) fleet.Judged {
	now := e.Now()
	return fleet.Judged{Sandbox: s, At: now, Verdict: triage.Judge(s, triage.Signals{}, e.Thresholds(s), now)}
}

// FindCreatedLimit bounds the look for what a failed create may have made.
const FindCreatedLimit = 5 * time.Second

// Judging is how every verb of this room judges sandboxes; look asks those themselves
// that their record leaves open.
func (e *Env) Judging(look bool, progress Progress) fleet.Judging {
	return fleet.Judging{Now: e.Now, Thresholds: e.Thresholds, Look: look, Seen: TellLooks(progress)}
}
