// Package store keeps what must survive the process and may be shared by several hosts:
// leases, observation counts, the records of what sbx created, summaries of bulk runs, tasks, samples of
// earlier looks and small documents of other packages. It is SQLite in the state directory by default,
// Postgres for a team, and memory for tests and simulations; one contract (runContract) holds
// for all three.
//
// It judges nothing: callers decide what an observation proves, a lease protects or a task's
// state means. Providers and verbs do not belong here, and no other package uses SQL.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"sbx/internal/sandbox"
)

// Store is everything that is stored. A verb that needs less asks for one of the parts.
//
// Every error is a fault with a hint and without a secret: KindUnavailable for a database
// that is down, full or does not answer, KindAuth for a refused login, KindUsage for a
// place that cannot be used, KindLocked for a lease or a file that another process holds,
// KindRefused for a schema of a newer sbx, KindUnknown for a broken file. An end of ctx has
// the kind of ctx. A change that ended in KindUnavailable may have been made all the same:
// read before doing it again. Times are stored in microseconds and returned in UTC; the
// zero time stays zero.
type Store interface { //nolint:interfacebloat // it is all its parts; whoever needs less asks for one
	LeaseStore
	SeenCountStore
	RecordStore
	RunStore
	TaskStore
	DocStore
	SampleStore
	ActStore
	// Close releases what the store holds open; its leases stay.
	Close() error
}

// LeaseStore grants exclusive rights for a time.
type LeaseStore interface {
	// Acquire takes the lease of that name for ttl. KindLocked, naming holder and end,
	// while it is held, also by the same holder.
	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (Lease, error)
	// Renew makes the lease end ttl from now. KindLocked once it has expired, even if it is
	// free: other processes may have concluded that its holder is dead.
	Renew(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error)
	// Release gives the lease back. KindLocked when another process has it or it was given
	// back before.
	Release(ctx context.Context, lease Lease) error
}

// SeenCountStore counts observations, so that a single one is never proof.
type SeenCountStore interface {
	// CountSeen records an observation. It counts when it is at least apart after the last that
	// counted; the first always does.
	CountSeen(ctx context.Context, kind, key string, at time.Time, apart time.Duration) (SeenCount, error)
	// Forget deletes the observations of a key; none is no error.
	Forget(ctx context.Context, kind, key string) error
	// SeenCounts returns all of a kind, by key.
	SeenCounts(ctx context.Context, kind string) (map[string]SeenCount, error)
}

// RecordStore keeps which sandboxes sbx created.
type RecordStore interface {
	// PutRecord inserts or replaces the record. A record without provider or id is
	// KindUsage.
	PutRecord(ctx context.Context, record Record) error
	// EndRecord records an end: state and reason become those given, and EndedAt keeps the
	// first recorded end. KindNotFound without a record.
	EndRecord(ctx context.Context, ref sandbox.Ref, state sandbox.State, reason string, at time.Time) error
	// Records returns all records of a profile, oldest first; "" = of all profiles. The
	// list is complete, or there is an error and no list.
	Records(ctx context.Context, provider string) ([]Record, error)
}

// RunStore keeps a summary of each bulk run.
type RunStore interface {
	// PutRun inserts or replaces the run. A run without id is KindUsage.
	PutRun(ctx context.Context, run Run) error
	// Runs returns the runs that started last, newest first; limit 0 = all.
	Runs(ctx context.Context, limit int) ([]Run, error)
}

// ActStore keeps what the runs of several hosts did, for an audit from any of them.
type ActStore interface {
	// AddActs inserts or replaces acts by run and place, and deletes those of all runs from
	// before keepSince. An act without run or time is KindUsage, and then none is added.
	AddActs(ctx context.Context, acts []Act, keepSince time.Time) error
	// Acts returns those of that time or later, oldest first.
	Acts(ctx context.Context, since time.Time) ([]Act, error)
}

// TaskStore keeps tasks, each changed by one conditional update at a time.
type TaskStore interface {
	// AddTask inserts a task as version 1, created by the store's clock where CreatedAt is
	// zero. With an existing Key it returns the stored task of that key and false. An id
	// that exists, or none, is KindUsage, and so is a reservation: only SwapTask checks it
	// against the budget.
	AddTask(ctx context.Context, t Task) (kept Task, added bool, err error)
	// Task reads one by its exact id; KindNotFound.
	Task(ctx context.Context, id string) (Task, error)
	// Tasks returns the newest first: by creation, then by the bytes of the id. The list is
	// complete up to the limit, or there is an error and no list.
	Tasks(ctx context.Context, q TaskQuery) ([]Task, error)
	// SwapTask replaces a task whose stored Version is t.Version; ID, Key, Spec and
	// CreatedAt stay as they were. It returns what is stored now. ErrTaskEnded inside
	// KindRefused when the task has ended, else ErrSwapped inside KindLocked when another
	// process was faster; KindNotFound; KindUsage for a fence below the stored one.
	//
	// With a Budget and limitMB > 0: ErrBudget inside KindRefused, and nothing is written,
	// where the reservation against this budget grows and would make the sum over all live
	// tasks of the budget exceed limitMB. That is decided inside the write, so that the sum
	// exceeds the limit at no commit.
	SwapTask(ctx context.Context, t Task, limitMB int64) (Task, error)
	// AwaitTask returns the task as soon as its Version differs from the given one, at once
	// when it does already. A store that is down is asked again until ctx ends.
	AwaitTask(ctx context.Context, id string, version int64) (Task, error)
}

// DocStore keeps small documents, each changed by one conditional update at a time. The
// versions of a key only ever grow, also when it is dropped and made again: a version read
// before a drop never matches a later document.
type DocStore interface {
	// Doc reads a document; Version 0 where there is none.
	Doc(ctx context.Context, kind, key string) (Doc, error)
	// Docs returns all of a kind, by key. Complete, or an error.
	Docs(ctx context.Context, kind string) ([]Doc, error)
	// SwapDoc replaces the body where the stored version is d.Version; 0 = there must be
	// none. It returns what is stored now; ErrSwapped inside KindLocked otherwise.
	SwapDoc(ctx context.Context, d Doc) (Doc, error)
	// DropDoc removes the document where the stored version is d.Version; ErrSwapped inside
	// KindLocked otherwise.
	DropDoc(ctx context.Context, d Doc) error
}

// SampleStore keeps what earlier looks have seen, for a bounded time and in a bounded space.
type SampleStore interface {
	// AddSamples stores all samples or none. One of the same profile, subject and time is
	// replaced. A sample without profile or time, or too large, is KindUsage.
	AddSamples(ctx context.Context, all []Sample) error
	// Samples returns those that a query selects, oldest first. Complete, or an error.
	Samples(ctx context.Context, q SampleQuery) ([]Sample, error)
	// ThinSamples deletes those of a profile that the rules do not keep.
	ThinSamples(ctx context.Context, profile string, now time.Time, rules SampleRules) error
}

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
