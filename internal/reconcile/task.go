package reconcile

import (
	"cmp"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// Task reads a row by the template's own rules: what is completed, failed,
// stopped or deleted needs no sandbox, unless it is kept alive on purpose, which a
// stop by hand ends. Where these rules say nothing, neither does the record.
func Task(t store.TaskRow) Record {
	r := Record{Record: providers.Record{
		SandboxID: t.SandboxID, TaskID: t.ID, RawState: t.Status, KeepAlive: t.KeepAlive, Live: live(t),
		CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, EndedAt: cmp.Or(t.DeletedAt, t.CompletedAt),
	}}
	if !t.DeletedAt.IsZero() {
		r.RawState += ", deleted"
	}
	if t.Status == statusStopped {
		r.KeepAlive = false
	}
	if r.KeepAlive {
		r.KeepFor = time.Duration(t.MaxDurationMinutes) * time.Minute
	}
	return r
}

// The statuses of the template.
const (
	statusPending    = "pending"
	statusProcessing = "processing"
	statusCompleted  = "completed"
	statusError      = "error"
	statusStopped    = "stopped"
)

func live(t store.TaskRow) sandbox.Verdict {
	deleted := !t.DeletedAt.IsZero()
	switch t.Status {
	case statusCompleted, statusError, statusStopped:
		return sandbox.False
	case statusPending, statusProcessing:
		switch {
		case !deleted:
			return sandbox.True
		case !t.KeepAlive:
			return sandbox.False
		}
	}
	return sandbox.Unknown
}
