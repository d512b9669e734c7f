package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

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
