package store

import (
	"context"
	"database/sql"
)

// migrations are the steps from one version to the next, as SQL for SQLite and Postgres.
// Times are microseconds since 1970, 0 for none.
func migrations() [schemaVersion][]string {
	return [schemaVersion][]string{{
		`CREATE TABLE sbx_lease (
			name TEXT NOT NULL PRIMARY KEY, holder TEXT NOT NULL, fence BIGINT NOT NULL, until_us BIGINT NOT NULL)`,
		`CREATE TABLE sbx_sighting (
			kind TEXT NOT NULL, key TEXT NOT NULL, first_us BIGINT NOT NULL, last_us BIGINT NOT NULL, counted BIGINT NOT NULL,
			PRIMARY KEY (kind, key))`,
		`CREATE TABLE sbx_record (
			provider TEXT NOT NULL, id TEXT NOT NULL, task_id TEXT NOT NULL, agent_type TEXT NOT NULL,
			owner TEXT NOT NULL, host TEXT NOT NULL, state TEXT NOT NULL,
			created_us BIGINT NOT NULL, updated_us BIGINT NOT NULL, ended_us BIGINT NOT NULL, reason TEXT NOT NULL,
			PRIMARY KEY (provider, id))`,
		`CREATE TABLE sbx_run (
			id TEXT NOT NULL PRIMARY KEY, verb TEXT NOT NULL, layer TEXT NOT NULL, host TEXT NOT NULL, who TEXT NOT NULL,
			started_us BIGINT NOT NULL, ended_us BIGINT NOT NULL, selected BIGINT NOT NULL, counts TEXT NOT NULL,
			exit_code BIGINT NOT NULL, resumable BOOLEAN NOT NULL, acted BOOLEAN NOT NULL, profiles TEXT NOT NULL)`,
		`CREATE INDEX sbx_run_started ON sbx_run (started_us)`,
	}, {
		`CREATE TABLE sbx_task (
			id TEXT NOT NULL PRIMARY KEY, key TEXT NOT NULL, spec TEXT NOT NULL, state TEXT NOT NULL, ended BOOLEAN NOT NULL,
			version BIGINT NOT NULL, fence BIGINT NOT NULL, owner TEXT NOT NULL, lease_us BIGINT NOT NULL,
			budget TEXT NOT NULL, reserve_mb BIGINT NOT NULL, created_us BIGINT NOT NULL, updated_us BIGINT NOT NULL,
			body TEXT NOT NULL)`,
		`CREATE UNIQUE INDEX sbx_task_key ON sbx_task (key) WHERE key <> ''`,
		`CREATE INDEX sbx_task_created ON sbx_task (created_us)`,
		`CREATE INDEX sbx_task_live ON sbx_task (budget, reserve_mb) WHERE NOT ended`,
		`CREATE TABLE sbx_doc (
			kind TEXT NOT NULL, key TEXT NOT NULL, version BIGINT NOT NULL, body TEXT NOT NULL, updated_us BIGINT NOT NULL,
			PRIMARY KEY (kind, key))`,
		`CREATE TABLE sbx_doc_version (kind TEXT NOT NULL PRIMARY KEY, version BIGINT NOT NULL)`,
	}, {
		`CREATE TABLE sbx_sample (
			profile TEXT NOT NULL, subject TEXT NOT NULL, at_us BIGINT NOT NULL, size BIGINT NOT NULL, body TEXT NOT NULL,
			PRIMARY KEY (profile, subject, at_us))`,
	}, {
		`CREATE TABLE sbx_act (
			run TEXT NOT NULL, seq BIGINT NOT NULL, at_us BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (run, seq))`,
		`CREATE INDEX sbx_act_at ON sbx_act (at_us)`,
	}}
}

// migrateSchema brings a database to schemaVersion. An existing one costs a single read.
// The version is read again inside the write transaction: of many processes on a new
// database one makes the tables, and the others find them.
func migrateSchema(ctx context.Context, db *sql.DB, e engine) error {
	var version int64
	err := e.retryLocked(ctx, func() error { return db.QueryRowContext(ctx, readVersion).Scan(&version) })
	switch {
	case err == nil && version >= schemaVersion:
		return newerSchemaError(version)
	case err != nil && !e.isFresh(err):
		return err
	}
	var tx *sql.Tx
	err = e.retryLocked(ctx, func() (err error) {
		tx, err = db.BeginTx(ctx, nil)
		return err
	})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after the commit there is nothing to roll back
	if err := e.lockMigration(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS sbx_schema (version BIGINT NOT NULL PRIMARY KEY)`); err != nil {
		return err
	}
	if err := tx.QueryRowContext(ctx, readVersion).Scan(&version); err != nil {
		return err
	}
	if version >= schemaVersion {
		return newerSchemaError(version)
	}
	steps := migrations()
	for _, step := range steps[version:] {
		for _, statement := range step {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO sbx_schema (version) VALUES ($1)`, int64(schemaVersion)); err != nil {
		return err
	}
	return tx.Commit()
}
