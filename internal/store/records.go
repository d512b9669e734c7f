package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
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

// PutRecord implements RecordStore.
func (d *Database) PutRecord(ctx context.Context, record Record) error {
	if err := record.checkRecord(); err != nil {
		return err
	}
	r := record.storable()
	_, err := d.execStatement(ctx, "record "+r.Ref().String(), putRecord, r.Provider, r.ID, r.TaskID, r.AgentType, r.Owner, r.Host,
		string(r.State), toMicros(r.CreatedAt), toMicros(r.UpdatedAt), toMicros(r.EndedAt), r.Reason)
	return err
}

// EndRecord implements RecordStore.
func (d *Database) EndRecord(ctx context.Context, ref sandbox.Ref, state sandbox.State, reason string, at time.Time) error {
	rows, err := d.execStatement(ctx, "end the record "+ref.String(), endRecord,
		string(state), storableText(reason), toMicros(at), storableText(ref.Provider), storableText(ref.ID))
	if err == nil && rows == 0 {
		return noRecordError(ref)
	}
	return err
}

// Records implements RecordStore.
func (d *Database) Records(ctx context.Context, provider string) ([]Record, error) {
	return rowType[Record]{scanRecord, compareAge}.queryList(ctx, d, "records "+provider, readRecords, storableText(provider))
}

func scanRecord(row rowScanner) (Record, error) {
	var r Record
	var created, updated, ended int64
	err := row.Scan(&r.Provider, &r.ID, &r.TaskID, &r.AgentType, &r.Owner, &r.Host, &r.State, &created, &updated, &ended, &r.Reason)
	r.CreatedAt, r.UpdatedAt, r.EndedAt = fromMicros(created), fromMicros(updated), fromMicros(ended)
	return r, err
}

func compareAge(a, b Record) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.ID, b.ID))
}

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

// PutRun implements RunStore.
func (d *Database) PutRun(ctx context.Context, run Run) error {
	if err := run.checkRun(); err != nil {
		return err
	}
	r := run.storable()
	counts, errCounts := json.Marshal(r.Counts)
	profiles, errProfiles := json.Marshal(r.Profiles)
	if err := errors.Join(errCounts, errProfiles); err != nil {
		return err
	}
	_, err := d.execStatement(ctx, "note run "+r.ID, putRun, r.ID, r.Verb, r.Layer, r.Host, r.Who, toMicros(r.StartedAt), toMicros(r.EndedAt),
		int64(r.Selected), string(counts), int64(r.ExitCode), r.Resumable, r.Acted, string(profiles))
	return err
}

// Runs implements RunStore.
func (d *Database) Runs(ctx context.Context, limit int) ([]Run, error) {
	if limit <= 0 {
		limit = math.MaxInt32
	}
	return rowType[Run]{scanRun, compareStart}.queryList(ctx, d, "runs", readRuns, int64(limit))
}

func scanRun(row rowScanner) (Run, error) {
	var r Run
	var started, ended int64
	var counts, profiles string
	err := row.Scan(&r.ID, &r.Verb, &r.Layer, &r.Host, &r.Who, &started, &ended, &r.Selected, &counts, &r.ExitCode, &r.Resumable, &r.Acted, &profiles)
	if err != nil {
		return r, err
	}
	r.StartedAt, r.EndedAt = fromMicros(started), fromMicros(ended)
	return r, errors.Join(json.Unmarshal([]byte(counts), &r.Counts), json.Unmarshal([]byte(profiles), &r.Profiles))
}

func compareStart(a, b Run) int {
	return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(b.ID, a.ID))
}

const (
	sight = `INSERT INTO sbx_sighting (kind, key, first_us, last_us, counted) VALUES ($1, $2, $3, $3, 1)
		ON CONFLICT (kind, key) DO UPDATE SET last_us = excluded.last_us, counted = sbx_sighting.counted + 1
		WHERE excluded.last_us - sbx_sighting.last_us >= $4`
	readSeenCount  = `SELECT first_us, last_us, counted FROM sbx_sighting WHERE kind = $1 AND key = $2`
	readSeenCounts = `SELECT first_us, last_us, counted, key FROM sbx_sighting WHERE kind = $1`
	forget         = `DELETE FROM sbx_sighting WHERE kind = $1 AND key = $2`
)

// CountSeen implements SeenCountStore.
func (d *Database) CountSeen(ctx context.Context, kind, key string, at time.Time, apart time.Duration) (SeenCount, error) {
	var s SeenCount
	kind, key = storableText(kind), storableText(key)
	err := d.writeTx(ctx, "sight "+kind, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, sight, kind, key, toMicros(at), apart.Microseconds()); err != nil {
			return err
		}
		return scanSeenCount(tx.QueryRowContext(ctx, readSeenCount, kind, key), &s)
	})
	return s, err
}

// Forget implements SeenCountStore.
func (d *Database) Forget(ctx context.Context, kind, key string) error {
	_, err := d.execStatement(ctx, "forget "+kind, forget, storableText(kind), storableText(key))
	return err
}

// SeenCounts implements SeenCountStore.
func (d *Database) SeenCounts(ctx context.Context, kind string) (map[string]SeenCount, error) {
	found := map[string]SeenCount{}
	err := d.queryRows(ctx, "sightings "+kind, readSeenCounts, []any{storableText(kind)}, func(rows *sql.Rows) error {
		var s SeenCount
		var key string
		if err := scanSeenCount(rows, &s, &key); err != nil {
			return err
		}
		found[key] = s
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// rowScanner is a row of a query.
type rowScanner interface{ Scan(into ...any) error }

func scanSeenCount(row rowScanner, s *SeenCount, more ...any) error {
	var first, last int64
	err := row.Scan(append([]any{&first, &last, &s.Count}, more...)...)
	s.First, s.Last = fromMicros(first), fromMicros(last)
	return err
}

const (
	// An insert finds no row or one whose time is over; the fence of a name is in its row,
	// which is never deleted.
	takeLease = `INSERT INTO sbx_lease (name, holder, fence, until_us) VALUES ($1, $2, 1, $3)
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, fence = sbx_lease.fence + 1, until_us = excluded.until_us
		WHERE sbx_lease.until_us <= $4 RETURNING fence`
	renewLease = `UPDATE sbx_lease SET until_us = $1 WHERE name = $2 AND holder = $3 AND fence = $4 AND until_us > $5`
	dropLease  = `UPDATE sbx_lease SET holder = '', until_us = 0 WHERE name = $1 AND holder = $2 AND fence = $3`
	readLease  = `SELECT holder, fence, until_us FROM sbx_lease WHERE name = $1`
)

// Acquire implements LeaseStore.
func (d *Database) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (Lease, error) {
	if err := checkLease(name, holder, ttl); err != nil {
		return Lease{}, err
	}
	lease := Lease{Name: storableText(name), Holder: storableText(holder)}
	err := d.writeTx(ctx, "acquire "+lease.Name, func(ctx context.Context, tx *sql.Tx) error {
		now, err := d.engine.storeTime(ctx, tx)
		if err != nil {
			return err
		}
		lease.Until = storedTime(now.Add(ttl))
		err = tx.QueryRowContext(ctx, takeLease, lease.Name, lease.Holder, toMicros(lease.Until), toMicros(now)).Scan(&lease.Fence)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		found, err := leaseIn(ctx, tx, lease.Name)
		if err != nil {
			return err
		}
		return heldError(found)
	})
	if err != nil {
		return Lease{}, err
	}
	return lease, nil
}

// Renew implements LeaseStore.
func (d *Database) Renew(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	if err := checkLease(lease.Name, lease.Holder, ttl); err != nil {
		return Lease{}, err
	}
	renewed := lease
	err := d.writeTx(ctx, "renew "+lease.Name, func(ctx context.Context, tx *sql.Tx) error {
		now, err := d.engine.storeTime(ctx, tx)
		if err != nil {
			return err
		}
		renewed.Until = storedTime(now.Add(ttl))
		return d.changeOwnLease(ctx, tx, lease, renewLease, toMicros(renewed.Until), lease.Name, lease.Holder, lease.Fence, toMicros(now))
	})
	if err != nil {
		return Lease{}, err
	}
	return renewed, nil
}

// Release implements LeaseStore.
func (d *Database) Release(ctx context.Context, lease Lease) error {
	return d.writeTx(ctx, "release "+lease.Name, func(ctx context.Context, tx *sql.Tx) error {
		return d.changeOwnLease(ctx, tx, lease, dropLease, lease.Name, lease.Holder, lease.Fence)
	})
}

// changeOwnLease runs a statement on the lease's row if it is still the caller's.
func (d *Database) changeOwnLease(ctx context.Context, tx *sql.Tx, lease Lease, statement string, args ...any) error {
	result, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	if rows, err := result.RowsAffected(); err != nil || rows == 1 {
		return err
	}
	found, err := leaseIn(ctx, tx, lease.Name)
	if err != nil {
		return err
	}
	return lostError(lease, found)
}

// leaseIn reads a lease; a name that was never leased is the zero lease.
func leaseIn(ctx context.Context, tx *sql.Tx, name string) (Lease, error) {
	lease, until := Lease{Name: name}, int64(0)
	err := tx.QueryRowContext(ctx, readLease, name).Scan(&lease.Holder, &lease.Fence, &until)
	if errors.Is(err, sql.ErrNoRows) {
		return Lease{Name: name}, nil
	}
	lease.Until = fromMicros(until)
	return lease, err
}
