package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"slices"
)

const (
	putRun = `INSERT INTO sbx_run
		(id, verb, layer, host, who, started_us, ended_us, selected, counts, exit_code, resumable, acted, profiles)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
		ON CONFLICT (id) DO UPDATE SET verb = excluded.verb, layer = excluded.layer, host = excluded.host, who = excluded.who,
		started_us = excluded.started_us, ended_us = excluded.ended_us, selected = excluded.selected,
		counts = excluded.counts, exit_code = excluded.exit_code, resumable = excluded.resumable,
		acted = excluded.acted, profiles = excluded.profiles`
	readRuns = `SELECT id, verb, layer, host, who, started_us, ended_us, selected, counts, exit_code, resumable, acted, profiles
		FROM sbx_run ORDER BY started_us DESC LIMIT $1`
)

// PutRun is RunStore's.
func (d *Database) PutRun(ctx context.Context, run Run) error {
	if err := run.check(); err != nil {
		return err
	}
	r := run.kept()
	counts, errCounts := json.Marshal(r.Counts)
	profiles, errProfiles := json.Marshal(r.Profiles)
	if err := errors.Join(errCounts, errProfiles); err != nil {
		return err
	}
	_, err := d.exec(ctx, "note run "+r.ID, putRun, r.ID, r.Verb, r.Layer, r.Host, r.Who, micros(r.StartedAt), micros(r.EndedAt),
		int64(r.Selected), string(counts), int64(r.ExitCode), r.Resumable, r.Acted, string(profiles))
	return err
}

// Runs is RunStore's.
func (d *Database) Runs(ctx context.Context, limit int) ([]Run, error) {
	if limit <= 0 {
		limit = math.MaxInt32
	}
	list := []Run{}
	err := d.query(ctx, "runs", readRuns, []any{int64(limit)}, func(rows *sql.Rows) error {
		r, err := scanRun(rows)
		list = append(list, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, byStart)
	return list, nil
}

func scanRun(row scanner) (Run, error) {
	var r Run
	var started, ended int64
	var counts, profiles string
	err := row.Scan(&r.ID, &r.Verb, &r.Layer, &r.Host, &r.Who, &started, &ended, &r.Selected, &counts, &r.ExitCode, &r.Resumable, &r.Acted, &profiles)
	if err != nil {
		return r, err
	}
	r.StartedAt, r.EndedAt = read(started), read(ended)
	return r, errors.Join(json.Unmarshal([]byte(counts), &r.Counts), json.Unmarshal([]byte(profiles), &r.Profiles))
}

// byStart is newest first.
func byStart(a, b Run) int {
	return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(b.ID, a.ID))
}
