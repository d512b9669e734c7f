package task

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Enlist is Add for a task of a batch, whose key says which work it is: a kept task
// of the key is given back with false although its limits are others by now. Whether
// it is the same work is for the caller to judge, by Spec.Work.
func (l Ledger) Enlist(ctx context.Context, t Task) (Task, bool, error) {
	row, err := t.encodeRow()
	if err != nil {
		return t, false, err
	}
	row.Spec = t.Spec.Fingerprint()
	kept, added, err := l.Store.AddTask(ctx, row)
	if err != nil {
		return t, false, err
	}
	got, err := decodeRow(kept)
	return got, added, err
}

// Work is a fingerprint of what a spec has done: the program, what it runs in and
// what becomes public. Where it runs, how much it may take and how often it is tried
// are not in it, and no value of its environment.
func (s Spec) Work() string {
	work := [][]string{s.Command, s.EnvNames, {
		s.Template, s.Snapshot, s.Image, s.Name, s.Workdir, s.AgentType, s.Push, s.Base, s.Publish, s.Session, s.Isolate,
	}}
	raw, err := json.Marshal(work)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}
