package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"sbx/internal/fault"
)

// TaskRow is a row of another application's table `tasks`, as the coding agent
// template of Vercel keeps it. Its columns have no time zone and mean UTC; zero =
// NULL.
type TaskRow struct {
	ID                 string
	Status             string // its own words: pending, processing, completed, error, stopped
	SandboxID          string
	KeepAlive          bool
	MaxDurationMinutes int
	CreatedAt          time.Time
	UpdatedAt          time.Time
	CompletedAt        time.Time
	DeletedAt          time.Time
}

const (
	// An epoch takes no notice of the session's time zone and date style.
	readTaskRows = `SELECT id, status, sandbox_id, keep_alive, max_duration,
		(extract(epoch FROM created_at) * 1000000)::bigint, (extract(epoch FROM updated_at) * 1000000)::bigint,
		(extract(epoch FROM completed_at) * 1000000)::bigint, (extract(epoch FROM deleted_at) * 1000000)::bigint
		FROM tasks WHERE sandbox_id IS NOT NULL ORDER BY created_at, id`
	// The server itself gives up before this side does: no query is left behind.
	limitTasks = `SET LOCAL statement_timeout = 9000`
)

// ReadTasks reads the tasks that name a sandbox, in a read-only transaction: the
// table belongs to somebody else, and the server holds sbx to that. All of them, or
// an error of the kinds of Store.
func ReadTasks(ctx context.Context, postgresURL string) ([]TaskRow, error) {
	s, err := newServer(postgresURL)
	if err != nil {
		return nil, fault.Placed(err, "", "URL of the tasks")
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := s.tasks(limited)
	if err != nil {
		return nil, trouble(ctx, s, "tasks at "+s.String(), err)
	}
	return list, nil
}

func (s *server) tasks(ctx context.Context) (list []TaskRow, err error) {
	db, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	if _, err := tx.ExecContext(ctx, limitTasks); err != nil {
		return nil, err
	}
	rows, err := tx.QueryContext(ctx, readTaskRows)
	if err != nil {
		return nil, err
	}
	err = each(rows, func(rows *sql.Rows) error {
		task, err := scanTaskRow(rows)
		list = append(list, task)
		return err
	})
	return list, err
}

func scanTaskRow(row scanner) (TaskRow, error) {
	var t TaskRow
	var keep sql.NullBool
	var minutes, created, updated, completed, deleted sql.NullInt64
	err := row.Scan(&t.ID, &t.Status, &t.SandboxID, &keep, &minutes, &created, &updated, &completed, &deleted)
	t.KeepAlive, t.MaxDurationMinutes = keep.Bool, int(minutes.Int64)
	t.CreatedAt, t.UpdatedAt = read(created.Int64), read(updated.Int64)
	t.CompletedAt, t.DeletedAt = read(completed.Int64), read(deleted.Int64)
	return t, err
}
