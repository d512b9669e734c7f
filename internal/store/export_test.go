package store

import (
	"context"
	"time"
)

// Open is New and a first use: it fails where the store cannot be used.
func Open(ctx context.Context, o Options) (*Database, error) {
	d, err := New(o)
	if err != nil {
		return nil, err
	}
	return d, d.Ready(ctx)
}

// LookEvery sets the poll interval of AwaitTask.
func LookEvery(d *Database, interval time.Duration) {
	switch e := d.engine.(type) {
	case *sqliteEngine:
		e.look = interval
	case *postgresEngine:
		e.look = interval
	}
}
