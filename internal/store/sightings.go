package store

import (
	"context"
	"database/sql"
	"time"
)

const (
	sight = `INSERT INTO sbx_sighting (kind, key, first_us, last_us, counted) VALUES ($1, $2, $3, $3, 1)
		ON CONFLICT (kind, key) DO UPDATE SET last_us = excluded.last_us, counted = sbx_sighting.counted + 1
		WHERE excluded.last_us - sbx_sighting.last_us >= $4`
	readSighting  = `SELECT first_us, last_us, counted FROM sbx_sighting WHERE kind = $1 AND key = $2`
	readSightings = `SELECT first_us, last_us, counted, key FROM sbx_sighting WHERE kind = $1`
	forget        = `DELETE FROM sbx_sighting WHERE kind = $1 AND key = $2`
)

// Sight is SightingStore's.
func (d *Database) Sight(ctx context.Context, kind, key string, at time.Time, apart time.Duration) (Sighting, error) {
	var s Sighting
	kind, key = text(kind), text(key)
	err := d.write(ctx, "sight "+kind, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, sight, kind, key, micros(at), apart.Microseconds()); err != nil {
			return err
		}
		return scanSighting(tx.QueryRowContext(ctx, readSighting, kind, key), &s)
	})
	return s, err
}

// Forget is SightingStore's.
func (d *Database) Forget(ctx context.Context, kind, key string) error {
	_, err := d.exec(ctx, "forget "+kind, forget, text(kind), text(key))
	return err
}

// Sightings is SightingStore's.
func (d *Database) Sightings(ctx context.Context, kind string) (map[string]Sighting, error) {
	found := map[string]Sighting{}
	err := d.query(ctx, "sightings "+kind, readSightings, []any{text(kind)}, func(rows *sql.Rows) error {
		var s Sighting
		var key string
		if err := scanSighting(rows, &s, &key); err != nil {
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

// scanner is a row, or the row that rows stand on.
type scanner interface{ Scan(into ...any) error }

func scanSighting(row scanner, s *Sighting, more ...any) error {
	var first, last int64
	err := row.Scan(append([]any{&first, &last, &s.Count}, more...)...)
	s.First, s.Last = read(first), read(last)
	return err
}
