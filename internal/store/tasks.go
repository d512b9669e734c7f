package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	taskColumns = `id, key, spec, state, ended, version, fence, owner, lease_us, budget, reserve_mb, created_us, updated_us, body`

	addTask = `INSERT INTO sbx_task (` + taskColumns + `)
		VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $8, $9, 0, CASE WHEN CAST($10 AS BIGINT) = 0 THEN %[1]s ELSE CAST($10 AS BIGINT) END, %[1]s, $11)
		ON CONFLICT DO NOTHING`

	// Of a task that has ended no row is written again: this is the only update of
	// the table, so that a trigger, which each database spells its own way and a
	// server asks more rights for, would guard nothing that this does not.
	swapTask = `UPDATE sbx_task SET state = $1, ended = $2, fence = $3, owner = $4, lease_us = $5, budget = $6, reserve_mb = $7,
		body = $8, version = version + 1, updated_us = %s
		WHERE id = $9 AND version = $10 AND NOT ended AND fence <= $3`
	withinBudget = ` AND ($2 OR $7 <= CASE WHEN budget = $6 THEN reserve_mb ELSE 0 END OR ` + othersMB + ` <= $11 - $7)`
	othersMB     = `(SELECT coalesce(sum(o.reserve_mb), 0) FROM sbx_task AS o WHERE o.budget = $6 AND NOT o.ended AND o.id <> $9)`
	sumOthers    = `SELECT CAST(coalesce(sum(reserve_mb), 0) AS BIGINT) FROM sbx_task WHERE budget = $1 AND NOT ended AND id <> $2`
)

// AddTask is TaskStore's.
func (d *Database) AddTask(ctx context.Context, task Task) (kept Task, added bool, err error) {
	if err := task.checkNew(); err != nil {
		return Task{}, false, err
	}
	t := task.kept()
	err = d.write(ctx, "add task "+t.ID, func(ctx context.Context, tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, fmt.Sprintf(addTask, d.engine.stamp()),
			t.ID, t.Key, t.Spec, t.State, t.Over, t.Fence, t.Owner, micros(t.LeaseUntil), t.Budget, micros(t.CreatedAt), string(t.Body))
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		if err != nil {
			return err
		}
		added = rows == 1
		kept, err = d.addedTask(ctx, tx, t, added)
		return err
	})
	if err != nil {
		return Task{}, false, err
	}
	return kept, added, nil
}

// addedTask reads the task that was added, or the one that has its key.
func (d *Database) addedTask(ctx context.Context, tx *sql.Tx, t Task, added bool) (Task, error) {
	column, value := "id", t.ID
	if !added {
		column, value = "key", t.Key
	}
	if value == "" {
		return Task{}, taskTaken(t.ID)
	}
	found, err := d.taskIn(ctx, tx, column, value)
	if errors.Is(err, sql.ErrNoRows) {
		return Task{}, taskTaken(t.ID)
	}
	return found, err
}

// taskIn reads the task with a value in a column; sql.ErrNoRows.
func (d *Database) taskIn(ctx context.Context, tx *sql.Tx, column, value string) (Task, error) {
	return scanTask(tx.QueryRowContext(ctx, d.selectTasks()+` WHERE `+column+` = $1`, value))
}

func (d *Database) selectTasks() string {
	return `SELECT ` + taskColumns + `, ` + d.engine.stamp() + ` FROM sbx_task`
}

func scanTask(row scanner) (Task, error) {
	var t Task
	var lease, created, updated, now int64
	var body string
	err := row.Scan(&t.ID, &t.Key, &t.Spec, &t.State, &t.Over, &t.Version, &t.Fence, &t.Owner, &lease,
		&t.Budget, &t.ReserveMB, &created, &updated, &body, &now)
	t.LeaseUntil, t.CreatedAt, t.UpdatedAt, t.ReadAt = read(lease), read(created), read(updated), read(now)
	t.Body = textOf([]byte(body))
	return t, err
}

// Task is TaskStore's.
func (d *Database) Task(ctx context.Context, id string) (Task, error) {
	list, err := d.listTasks(ctx, "task "+text(id), ` WHERE id = $1`, text(id))
	switch {
	case err != nil:
		return Task{}, err
	case len(list) == 0:
		return Task{}, noTask(text(id))
	}
	return list[0], nil
}

// Tasks is TaskStore's.
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
		asks(`substr(id, 1, length(?)) = ?`, text(q.Prefix))
	}
	if q.Live {
		asks(`NOT ended`)
	}
	if !q.Since.IsZero() {
		asks(`created_us >= ?`, micros(q.Since))
	}
	clause := ``
	if len(where) > 0 {
		clause = ` WHERE ` + strings.Join(where, ` AND `)
	}
	if q.Limit > 0 {
		clause += ` ORDER BY created_us DESC, ` + d.engine.bytewise("id") + ` DESC LIMIT ` + strconv.Itoa(q.Limit)
	}
	return d.listTasks(ctx, "tasks", clause, args...)
}

func (d *Database) listTasks(ctx context.Context, op, clause string, args ...any) ([]Task, error) {
	list := []Task{}
	err := d.query(ctx, op, d.selectTasks()+clause, args, func(rows *sql.Rows) error {
		t, err := scanTask(rows)
		list = append(list, t)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, byCreation)
	return list, nil
}

// SwapTask is TaskStore's.
func (d *Database) SwapTask(ctx context.Context, task Task, limitMB int64) (Task, error) {
	if err := task.check(); err != nil {
		return Task{}, err
	}
	t := task.kept()
	bounded := t.Budget != "" && limitMB > 0
	err := d.write(ctx, "change task "+t.ID, func(ctx context.Context, tx *sql.Tx) error {
		if bounded {
			if err := d.engine.reserve(ctx, tx, t.Budget); err != nil {
				return err
			}
		}
		now, err := d.swapIn(ctx, tx, t, bounded, limitMB)
		if errors.Is(err, sql.ErrNoRows) {
			return d.unswapped(ctx, tx, t, bounded, limitMB)
		}
		if err != nil {
			return err
		}
		t = now
		return d.engine.tell(ctx, tx, topic(t.ID))
	})
	if err != nil {
		return Task{}, err
	}
	d.board.tell(topic(t.ID))
	return t, nil
}

// swapIn is the one conditional update; sql.ErrNoRows when it found nothing to
// change.
func (d *Database) swapIn(ctx context.Context, tx *sql.Tx, t Task, bounded bool, limitMB int64) (Task, error) {
	statement := fmt.Sprintf(swapTask, d.engine.stamp())
	args := []any{
		t.State, t.Over, t.Fence, t.Owner, micros(t.LeaseUntil), t.Budget, t.ReserveMB, string(t.Body), t.ID, t.Version,
	}
	if bounded {
		statement, args = statement+withinBudget, append(args, limitMB)
	}
	var created, updated int64
	err := tx.QueryRowContext(ctx, statement+` RETURNING key, spec, version, created_us, updated_us`, args...).
		Scan(&t.Key, &t.Spec, &t.Version, &created, &updated)
	t.CreatedAt, t.UpdatedAt, t.ReadAt = read(created), read(updated), read(updated)
	return t, err
}

// unswapped says why swapIn found nothing to change.
func (d *Database) unswapped(ctx context.Context, tx *sql.Tx, t Task, bounded bool, limitMB int64) error {
	now, err := d.taskIn(ctx, tx, "id", t.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return noTask(t.ID)
	}
	var r reserved
	if err == nil && bounded && grows(t, now) {
		r.limit = limitMB
		err = tx.QueryRowContext(ctx, sumOthers, t.Budget, t.ID).Scan(&r.others)
	}
	if err != nil {
		return err
	}
	return unswapped(t, now, r)
}
