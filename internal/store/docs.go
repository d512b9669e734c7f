package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
)

const (
	// Whoever makes or drops a document of a kind waits here for everybody else who
	// does: the version of a new one is above those of all that were dropped, which
	// leave no row behind.
	nextVersion = `INSERT INTO sbx_doc_version (kind, version) VALUES ($1, 1)
		ON CONFLICT (kind) DO UPDATE SET version = sbx_doc_version.version + 1 RETURNING version`
	keepVersion = `INSERT INTO sbx_doc_version (kind, version) VALUES ($1, $2) ON CONFLICT (kind) DO UPDATE SET version =
		CASE WHEN sbx_doc_version.version < excluded.version THEN excluded.version ELSE sbx_doc_version.version END`
	addDoc = `INSERT INTO sbx_doc (kind, key, version, body, updated_us) VALUES ($1, $2, $3, $4, %s)
		ON CONFLICT DO NOTHING RETURNING version, updated_us`
	replaceDoc = `UPDATE sbx_doc SET version = version + 1, body = $4, updated_us = %s
		WHERE kind = $1 AND key = $2 AND version = $3 RETURNING version, updated_us`
	dropDoc = `DELETE FROM sbx_doc WHERE kind = $1 AND key = $2 AND version = $3`
)

// Doc is DocStore's.
func (d *Database) Doc(ctx context.Context, kind, key string) (Doc, error) {
	found := Doc{Kind: text(kind), Key: text(key)}
	if err := found.check(); err != nil {
		return Doc{}, err
	}
	op := "document " + found.Kind + " " + found.Key
	err := d.query(ctx, op, docIn(d.engine), []any{found.Kind, found.Key}, func(rows *sql.Rows) error {
		return scanDoc(rows, &found)
	})
	if err != nil {
		return Doc{}, err
	}
	return found, nil
}

// docIn reads one document: an aggregate gives a row, and with it the clock, also
// where there is nothing.
func docIn(e engine) string {
	return `SELECT coalesce(max(version), 0), coalesce(max(body), ''), coalesce(max(updated_us), 0), ` + e.stamp() +
		` FROM sbx_doc WHERE kind = $1 AND key = $2`
}

func scanDoc(row scanner, d *Doc, more ...any) error {
	var updated, now int64
	var body string
	err := row.Scan(append([]any{&d.Version, &body, &updated, &now}, more...)...)
	d.Body, d.UpdatedAt, d.ReadAt = textOf([]byte(body)), read(updated), read(now)
	return err
}

// Docs is DocStore's.
func (d *Database) Docs(ctx context.Context, kind string) ([]Doc, error) {
	list := []Doc{}
	statement := `SELECT version, body, updated_us, ` + d.engine.stamp() + `, key FROM sbx_doc WHERE kind = $1`
	err := d.query(ctx, "documents "+text(kind), statement, []any{text(kind)}, func(rows *sql.Rows) error {
		found := Doc{Kind: text(kind)}
		err := scanDoc(rows, &found, &found.Key)
		list = append(list, found)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, byKey)
	return list, nil
}

// SwapDoc is DocStore's.
func (d *Database) SwapDoc(ctx context.Context, doc Doc) (Doc, error) {
	if err := doc.check(); err != nil {
		return Doc{}, err
	}
	want := doc.kept()
	swapped := want
	err := d.write(ctx, "change document "+want.Kind+" "+want.Key, func(ctx context.Context, tx *sql.Tx) error {
		statement, version := replaceDoc, want.Version
		if want.Version == 0 {
			statement = addDoc
			if err := tx.QueryRowContext(ctx, nextVersion, want.Kind).Scan(&version); err != nil {
				return err
			}
		}
		var updated int64
		err := tx.QueryRowContext(ctx, fmt.Sprintf(statement, d.engine.stamp()), want.Kind, want.Key, version, string(want.Body)).
			Scan(&swapped.Version, &updated)
		swapped.UpdatedAt, swapped.ReadAt = read(updated), read(updated)
		if errors.Is(err, sql.ErrNoRows) {
			return d.docSwapped(ctx, tx, want)
		}
		return err
	})
	if err != nil {
		return Doc{}, err
	}
	return swapped, nil
}

// docSwapped says why there was nothing to change.
func (d *Database) docSwapped(ctx context.Context, tx *sql.Tx, want Doc) error {
	var now Doc
	if err := scanDoc(tx.QueryRowContext(ctx, docIn(d.engine), want.Kind, want.Key), &now); err != nil {
		return err
	}
	return docSwapped(want, now.Version)
}

// DropDoc is DocStore's.
func (d *Database) DropDoc(ctx context.Context, doc Doc) error {
	if err := doc.check(); err != nil {
		return err
	}
	want := doc.kept()
	return d.write(ctx, "drop document "+want.Kind+" "+want.Key, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, keepVersion, want.Kind, want.Version); err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, dropDoc, want.Kind, want.Key, want.Version)
		if err != nil {
			return err
		}
		if rows, err := result.RowsAffected(); err != nil || rows == 1 {
			return err
		}
		return d.docSwapped(ctx, tx, want)
	})
}
