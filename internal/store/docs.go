package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

const (
	// Creating or dropping documents of a kind is serialized by this row: the version of a
	// new one is above those of all dropped ones, which leave no row behind.
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

// Doc implements DocStore.
func (d *Database) Doc(ctx context.Context, kind, key string) (Doc, error) {
	found := Doc{Kind: storableText(kind), Key: storableText(key)}
	if err := found.checkDoc(); err != nil {
		return Doc{}, err
	}
	op := "document " + found.Kind + " " + found.Key
	err := d.queryRows(ctx, op, docIn(d.engine), []any{found.Kind, found.Key}, func(rows *sql.Rows) error {
		return scanDoc(rows, &found)
	})
	if err != nil {
		return Doc{}, err
	}
	return found, nil
}

// docIn reads one document: an aggregate returns a row with the clock also where there is
// no document.
func docIn(e engine) string {
	return `SELECT coalesce(max(version), 0), coalesce(max(body), ''), coalesce(max(updated_us), 0), ` + e.timeExpression() +
		` FROM sbx_doc WHERE kind = $1 AND key = $2`
}

func scanDoc(row rowScanner, d *Doc, more ...any) error {
	var updated, now int64
	var body string
	err := row.Scan(append([]any{&d.Version, &body, &updated, &now}, more...)...)
	d.Body, d.UpdatedAt, d.ReadAt = storableBytes([]byte(body)), fromMicros(updated), fromMicros(now)
	return err
}

// Docs implements DocStore.
func (d *Database) Docs(ctx context.Context, kind string) ([]Doc, error) {
	kind = storableText(kind)
	statement := `SELECT version, body, updated_us, ` + d.engine.timeExpression() + `, key FROM sbx_doc WHERE kind = $1`
	scan := func(row rowScanner) (Doc, error) {
		found := Doc{Kind: kind}
		err := scanDoc(row, &found, &found.Key)
		return found, err
	}
	return rowType[Doc]{scan, compareKeys}.queryList(ctx, d, "documents "+kind, statement, kind)
}

// SwapDoc implements DocStore.
func (d *Database) SwapDoc(ctx context.Context, doc Doc) (Doc, error) {
	if err := doc.checkDoc(); err != nil {
		return Doc{}, err
	}
	want := doc.storable()
	swapped := want
	err := d.writeTx(ctx, "change document "+want.Kind+" "+want.Key, func(ctx context.Context, tx *sql.Tx) error {
		statement, version := replaceDoc, want.Version
		if want.Version == 0 {
			statement = addDoc
			if err := tx.QueryRowContext(ctx, nextVersion, want.Kind).Scan(&version); err != nil {
				return err
			}
		}
		var updated int64
		err := tx.QueryRowContext(ctx, fmt.Sprintf(statement, d.engine.timeExpression()), want.Kind, want.Key, version, string(want.Body)).
			Scan(&swapped.Version, &updated)
		swapped.UpdatedAt, swapped.ReadAt = fromMicros(updated), fromMicros(updated)
		if errors.Is(err, sql.ErrNoRows) {
			return d.explainDocSwap(ctx, tx, want)
		}
		return err
	})
	if err != nil {
		return Doc{}, err
	}
	return swapped, nil
}

// explainDocSwap is why there was nothing to change.
func (d *Database) explainDocSwap(ctx context.Context, tx *sql.Tx, want Doc) error {
	var now Doc
	if err := scanDoc(tx.QueryRowContext(ctx, docIn(d.engine), want.Kind, want.Key), &now); err != nil {
		return err
	}
	return docSwapError(want, now.Version)
}

// DropDoc implements DocStore.
func (d *Database) DropDoc(ctx context.Context, doc Doc) error {
	if err := doc.checkDoc(); err != nil {
		return err
	}
	want := doc.storable()
	return d.writeTx(ctx, "drop document "+want.Kind+" "+want.Key, func(ctx context.Context, tx *sql.Tx) error {
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
		return d.explainDocSwap(ctx, tx, want)
	})
}
