package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"sbx/internal/sandbox"
)

const (
	putRecord = `INSERT INTO sbx_record
		(provider, id, task_id, agent_type, owner, host, state, created_us, updated_us, ended_us, reason)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (provider, id) DO UPDATE SET task_id = excluded.task_id, agent_type = excluded.agent_type,
		owner = excluded.owner, host = excluded.host, state = excluded.state, created_us = excluded.created_us,
		updated_us = excluded.updated_us, ended_us = excluded.ended_us, reason = excluded.reason`
	endRecord = `UPDATE sbx_record SET state = $1, reason = $2, updated_us = $3,
		ended_us = CASE WHEN ended_us = 0 THEN $3 ELSE ended_us END WHERE provider = $4 AND id = $5`
	readRecords = `SELECT provider, id, task_id, agent_type, owner, host, state, created_us, updated_us, ended_us, reason
		FROM sbx_record WHERE $1 = '' OR provider = $1`
)

// PutRecord is RecordStore's.
func (d *Database) PutRecord(ctx context.Context, record Record) error {
	if err := record.check(); err != nil {
		return err
	}
	r := record.kept()
	_, err := d.exec(ctx, "record "+r.Ref().String(), putRecord, r.Provider, r.ID, r.TaskID, r.AgentType, r.Owner, r.Host,
		string(r.State), micros(r.CreatedAt), micros(r.UpdatedAt), micros(r.EndedAt), r.Reason)
	return err
}

// EndRecord is RecordStore's.
func (d *Database) EndRecord(ctx context.Context, ref sandbox.Ref, state sandbox.State, reason string, at time.Time) error {
	rows, err := d.exec(ctx, "end the record "+ref.String(), endRecord,
		string(state), text(reason), micros(at), text(ref.Provider), text(ref.ID))
	if err == nil && rows == 0 {
		return noRecord(ref)
	}
	return err
}

// Records is RecordStore's.
func (d *Database) Records(ctx context.Context, provider string) ([]Record, error) {
	list := []Record{}
	err := d.query(ctx, "records "+provider, readRecords, []any{text(provider)}, func(rows *sql.Rows) error {
		r, err := scanRecord(rows)
		list = append(list, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, byAge) // here, because databases order texts by their own locale
	return list, nil
}

func scanRecord(row scanner) (Record, error) {
	var r Record
	var created, updated, ended int64
	err := row.Scan(&r.Provider, &r.ID, &r.TaskID, &r.AgentType, &r.Owner, &r.Host, &r.State, &created, &updated, &ended, &r.Reason)
	r.CreatedAt, r.UpdatedAt, r.EndedAt = read(created), read(updated), read(ended)
	return r, err
}

func byAge(a, b Record) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.ID, b.ID))
}
