package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"sbx/internal/fault"
)

// TaskRow is a row of another application's table `tasks`, with the columns of the coding
// agent template of Vercel. They have no time zone and mean UTC; zero = NULL.
type TaskRow struct {
	ID                 string
	Status             string // pending, processing, completed, error, stopped
	SandboxID          string
	KeepAlive          bool
	MaxDurationMinutes int
	CreatedAt          time.Time
	UpdatedAt          time.Time
	CompletedAt        time.Time
	DeletedAt          time.Time
}

const (
	// An epoch is independent of the session's time zone and date style.
	readTaskRows = `SELECT id, status, sandbox_id, keep_alive, max_duration,
		(extract(epoch FROM created_at) * 1000000)::bigint, (extract(epoch FROM updated_at) * 1000000)::bigint,
		(extract(epoch FROM completed_at) * 1000000)::bigint, (extract(epoch FROM deleted_at) * 1000000)::bigint
		FROM tasks WHERE sandbox_id IS NOT NULL ORDER BY created_at, id`
	// The server gives up before the client does: no query is left behind.
	limitTasks = `SET LOCAL statement_timeout = 9000`
)

// ReadTasks reads the tasks that name a sandbox, in a read-only transaction, because the
// table belongs to another application. It returns all of them, or an error of the kinds of
// Store.
func ReadTasks(ctx context.Context, postgresURL string) ([]TaskRow, error) {
	s, err := newPostgres(postgresURL)
	if err != nil {
		return nil, fault.Placed(err, "", "URL of the tasks")
	}
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := s.readTaskRows(limited)
	if err != nil {
		return nil, storeError(ctx, s, "tasks at "+s.String(), err)
	}
	return list, nil
}

func (s *postgresEngine) readTaskRows(ctx context.Context) (list []TaskRow, err error) {
	db, err := s.openDB(ctx)
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
	err = eachRow(rows, func(rows *sql.Rows) error {
		task, err := scanTaskRow(rows)
		list = append(list, task)
		return err
	})
	return list, err
}

func scanTaskRow(row rowScanner) (TaskRow, error) {
	var t TaskRow
	var keep sql.NullBool
	var minutes, created, updated, completed, deleted sql.NullInt64
	err := row.Scan(&t.ID, &t.Status, &t.SandboxID, &keep, &minutes, &created, &updated, &completed, &deleted)
	t.KeepAlive, t.MaxDurationMinutes = keep.Bool, int(minutes.Int64)
	t.CreatedAt, t.UpdatedAt = fromMicros(created.Int64), fromMicros(updated.Int64)
	t.CompletedAt, t.DeletedAt = fromMicros(completed.Int64), fromMicros(deleted.Int64)
	return t, err
}
