package reconcile

import (
	"cmp"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// TaskRow is one row of the table `tasks` of the coding-agent template, in the
// nine columns that matter here. Zero times are NULL.
type TaskRow struct {
	ID                 string
	Status             string // pending, processing, completed, error, stopped
	SandboxID          string
	KeepAlive          bool
	MaxDurationMinutes int // 0 = NULL
	CreatedAt          time.Time
	UpdatedAt          time.Time
	CompletedAt        time.Time
	DeletedAt          time.Time
}

// Record reads a row by the template's own rules: what is completed, failed,
// stopped or deleted needs no sandbox, unless it is kept alive on purpose, which a
// stop by hand ends. Where these rules say nothing, neither does the record.
func (t TaskRow) Record() Record {
	r := Record{Record: providers.Record{
		SandboxID: t.SandboxID, TaskID: t.ID, RawState: t.Status, KeepAlive: t.KeepAlive, Live: t.live(),
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

func (t TaskRow) live() sandbox.Verdict {
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
