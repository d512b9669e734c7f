package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
)

// Act is one destructive action of a run, as its host has journalled it.
type Act struct {
	Run  string
	Seq  int // its place in the run
	At   time.Time
	Body string // a JSON document that is opaque here
}

const (
	putActs    = `INSERT INTO sbx_act (run, seq, at_us, body) VALUES `
	putActsEnd = ` ON CONFLICT (run, seq) DO UPDATE SET at_us = excluded.at_us, body = excluded.body`
	readActs   = `SELECT run, seq, at_us, body FROM sbx_act WHERE at_us >= $1`
	dropActs   = `DELETE FROM sbx_act WHERE at_us < $1`
)

// actsAtOnce is how many acts one statement adds: a run of thousands must not need as many round
// trips.
const actsAtOnce = 200

// AddActs implements ActStore.
func (d *Database) AddActs(ctx context.Context, acts []Act, keepSince time.Time) error {
	if err := checkActs(acts); err != nil || len(acts) == 0 {
		return err
	}
	return d.writeTx(ctx, "add acts", func(ctx context.Context, tx *sql.Tx) error {
		for part := range slices.Chunk(acts, actsAtOnce) {
			var rows []string
			var args []any
			for _, act := range part {
				a, n := act.storable(), len(args)
				rows = append(rows, fmt.Sprintf("($%d, $%d, $%d, $%d)", n+1, n+2, n+3, n+4))
				args = append(args, a.Run, int64(a.Seq), toMicros(a.At), a.Body)
			}
			if _, err := tx.ExecContext(ctx, putActs+strings.Join(rows, ", ")+putActsEnd, args...); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, dropActs, toMicros(keepSince))
		return err
	})
}

// Acts implements ActStore.
func (d *Database) Acts(ctx context.Context, since time.Time) ([]Act, error) {
	return rowType[Act]{scanAct, compareActs}.queryList(ctx, d, "acts", readActs, toMicros(since))
}

func scanAct(row rowScanner) (Act, error) {
	var a Act
	var at int64
	err := row.Scan(&a.Run, &a.Seq, &at, &a.Body)
	a.At = fromMicros(at)
	return a, err
}

func compareActs(a, b Act) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Run, b.Run), cmp.Compare(a.Seq, b.Seq))
}

func checkActs(acts []Act) error {
	for _, a := range acts {
		if a.Run == "" || a.At.IsZero() {
			return fault.Usage("an act needs a run and a time")
		}
	}
	return nil
}

func (a Act) storable() Act {
	a.Run, a.At, a.Body = storableText(a.Run), storedTime(a.At), storableText(a.Body)
	return a
}

// AddActs implements ActStore.
func (m *InMemory) AddActs(ctx context.Context, acts []Act, keepSince time.Time) error {
	if err := cmp.Or(checkActs(acts), ctx.Err()); err != nil || len(acts) == 0 {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, act := range acts {
		a := act.storable()
		m.acts = slices.DeleteFunc(m.acts, func(o Act) bool { return o.Run == a.Run && o.Seq == a.Seq })
		m.acts = append(m.acts, a)
	}
	m.acts = slices.DeleteFunc(m.acts, func(a Act) bool { return a.At.Before(storedTime(keepSince)) })
	slices.SortFunc(m.acts, compareActs)
	return nil
}

// Acts implements ActStore.
func (m *InMemory) Acts(ctx context.Context, since time.Time) ([]Act, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	list := []Act{}
	for _, a := range m.acts {
		if !a.At.Before(storedTime(since)) {
			list = append(list, a)
		}
	}
	return list, nil
}
