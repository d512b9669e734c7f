package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
)

const (
	taskColumns = `id, key, spec, state, ended, version, fence, owner, lease_us, budget, reserve_mb, created_us, updated_us, body`

	addTask = `INSERT INTO sbx_task (` + taskColumns + `)
		VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $8, $9, 0, CASE WHEN CAST($10 AS BIGINT) = 0 THEN %[1]s ELSE CAST($10 AS BIGINT) END, %[1]s, $11)
		ON CONFLICT DO NOTHING`

	// The only update of the table. It never changes a task that has ended, so a trigger
	// would protect nothing more.
	swapTask = `UPDATE sbx_task SET state = $1, ended = $2, fence = $3, owner = $4, lease_us = $5, budget = $6, reserve_mb = $7,
		body = $8, version = version + 1, updated_us = %s
		WHERE id = $9 AND version = $10 AND NOT ended AND fence <= $3`
	withinBudget = ` AND ($2 OR $7 <= CASE WHEN budget = $6 THEN reserve_mb ELSE 0 END OR ` + othersMB + ` <= $11 - $7)`
	othersMB     = `(SELECT coalesce(sum(o.reserve_mb), 0) FROM sbx_task AS o WHERE o.budget = $6 AND NOT o.ended AND o.id <> $9)`
	sumOthers    = `SELECT CAST(coalesce(sum(reserve_mb), 0) AS BIGINT) FROM sbx_task WHERE budget = $1 AND NOT ended AND id <> $2`
)

// AddTask implements TaskStore.
func (d *Database) AddTask(ctx context.Context, task Task) (kept Task, added bool, err error) {
	if err := task.checkNewTask(); err != nil {
		return Task{}, false, err
	}
	t := task.storable()
	err = d.writeTx(ctx, "add task "+t.ID, func(ctx context.Context, tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, fmt.Sprintf(addTask, d.engine.timeExpression()),
			t.ID, t.Key, t.Spec, t.State, t.Ended, t.Fence, t.Owner, toMicros(t.LeaseUntil), t.Budget, toMicros(t.CreatedAt), string(t.Body))
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		if err != nil {
			return err
		}
		added = rows == 1
		kept, err = d.readAddedTask(ctx, tx, t, added)
		return err
	})
	if err != nil {
		return Task{}, false, err
	}
	return kept, added, nil
}

func (d *Database) readAddedTask(ctx context.Context, tx *sql.Tx, t Task, added bool) (Task, error) {
	column, value := "id", t.ID
	if !added {
		column, value = "key", t.Key
	}
	if value == "" {
		return Task{}, taskTakenError(t.ID)
	}
	found, err := d.readTaskBy(ctx, tx, column, value)
	if errors.Is(err, sql.ErrNoRows) {
		return Task{}, taskTakenError(t.ID)
	}
	return found, err
}

// readTaskBy reads the task with a value in a column; sql.ErrNoRows.
func (d *Database) readTaskBy(ctx context.Context, tx *sql.Tx, column, value string) (Task, error) {
	return scanTask(tx.QueryRowContext(ctx, d.taskSelect()+` WHERE `+column+` = $1`, value))
}

func (d *Database) taskSelect() string {
	return `SELECT ` + taskColumns + `, ` + d.engine.timeExpression() + ` FROM sbx_task`
}

func scanTask(row rowScanner) (Task, error) {
	var t Task
	var lease, created, updated, now int64
	var body string
	err := row.Scan(&t.ID, &t.Key, &t.Spec, &t.State, &t.Ended, &t.Version, &t.Fence, &t.Owner, &lease,
		&t.Budget, &t.ReserveMB, &created, &updated, &body, &now)
	t.LeaseUntil, t.CreatedAt, t.UpdatedAt, t.ReadAt = fromMicros(lease), fromMicros(created), fromMicros(updated), fromMicros(now)
	t.Body = storableBytes([]byte(body))
	return t, err
}

// Task implements TaskStore.
func (d *Database) Task(ctx context.Context, id string) (Task, error) {
	list, err := d.listTasks(ctx, "task "+storableText(id), ` WHERE id = $1`, storableText(id))
	switch {
	case err != nil:
		return Task{}, err
	case len(list) == 0:
		return Task{}, noTaskError(storableText(id))
	}
	return list[0], nil
}

// Tasks implements TaskStore.
func (d *Database) Tasks(ctx context.Context, q TaskQuery) ([]Task, error) {
	var where []string
	var args []any
	asks := func(condition string, values ...any) {
		for _, value := range values {
			args = append(args, value)
			condition = strings.ReplaceAll(condition, "?", "$"+strconv.Itoa(len(args)))
		}
		where = append(where, condition)
	}
	if q.Prefix != "" {
		asks(`substr(id, 1, length(?)) = ?`, storableText(q.Prefix))
	}
	if q.Live {
		asks(`NOT ended`)
	}
	if !q.Since.IsZero() {
		asks(`created_us >= ?`, toMicros(q.Since))
	}
	clause := ``
	if len(where) > 0 {
		clause = ` WHERE ` + strings.Join(where, ` AND `)
	}
	if q.Limit > 0 {
		clause += ` ORDER BY created_us DESC, ` + d.engine.byteOrder("id") + ` DESC LIMIT ` + strconv.Itoa(q.Limit)
	}
	return d.listTasks(ctx, "tasks", clause, args...)
}

func (d *Database) listTasks(ctx context.Context, op, clause string, args ...any) ([]Task, error) {
	return rowType[Task]{scanTask, compareCreation}.queryList(ctx, d, op, d.taskSelect()+clause, args...)
}

// SwapTask implements TaskStore.
func (d *Database) SwapTask(ctx context.Context, task Task, limitMB int64) (Task, error) {
	if err := task.checkTask(); err != nil {
		return Task{}, err
	}
	t := task.storable()
	bounded := t.Budget != "" && limitMB > 0
	err := d.writeTx(ctx, "change task "+t.ID, func(ctx context.Context, tx *sql.Tx) error {
		if bounded {
			if err := d.engine.lockBudget(ctx, tx, t.Budget); err != nil {
				return err
			}
		}
		now, err := d.updateTask(ctx, tx, t, bounded, limitMB)
		if errors.Is(err, sql.ErrNoRows) {
			return d.explainSwap(ctx, tx, t, bounded, limitMB)
		}
		if err != nil {
			return err
		}
		t = now
		return d.engine.notifyTopic(ctx, tx, topicOf(t.ID))
	})
	if err != nil {
		return Task{}, err
	}
	d.waiters.publishTopic(topicOf(t.ID))
	return t, nil
}

// updateTask is the one conditional update; sql.ErrNoRows when it found nothing to
// change.
func (d *Database) updateTask(ctx context.Context, tx *sql.Tx, t Task, bounded bool, limitMB int64) (Task, error) {
	statement := fmt.Sprintf(swapTask, d.engine.timeExpression())
	args := []any{
		t.State, t.Ended, t.Fence, t.Owner, toMicros(t.LeaseUntil), t.Budget, t.ReserveMB, string(t.Body), t.ID, t.Version,
	}
	if bounded {
		statement, args = statement+withinBudget, append(args, limitMB)
	}
	var created, updated int64
	err := tx.QueryRowContext(ctx, statement+` RETURNING key, spec, version, created_us, updated_us`, args...).
		Scan(&t.Key, &t.Spec, &t.Version, &created, &updated)
	t.CreatedAt, t.UpdatedAt, t.ReadAt = fromMicros(created), fromMicros(updated), fromMicros(updated)
	return t, err
}

// explainSwap is why updateTask found nothing to change.
func (d *Database) explainSwap(ctx context.Context, tx *sql.Tx, t Task, bounded bool, limitMB int64) error {
	now, err := d.readTaskBy(ctx, tx, "id", t.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return noTaskError(t.ID)
	}
	var r reservation
	if err == nil && bounded && growsReservation(t, now) {
		r.limit = limitMB
		err = tx.QueryRowContext(ctx, sumOthers, t.Budget, t.ID).Scan(&r.others)
	}
	if err != nil {
		return err
	}
	return swapError(t, now, r)
}

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
