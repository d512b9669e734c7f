package store

import "time"

// LookEvery sets how long AwaitTask goes without news before it looks.
func LookEvery(d *Database, interval time.Duration) {
	switch e := d.engine.(type) {
	case *file:
		e.look = interval
	case *server:
		e.look = interval
	}
}
