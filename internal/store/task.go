package store

import (
	"cmp"
	"errors"
	"strings"
	"time"
)

// Task is a task as it is kept. What it means is the task room's affair: the store
// knows what it needs to find and to compare. ID, Key and Budget have at most 1 KiB.
type Task struct {
	ID         string
	Key        string // its idempotency key, unique; "" = none
	Spec       string // a fingerprint of what was asked for
	State      string
	Over       bool      // it has ended: it never changes again
	Version    int64     // grows by one with every change, from 1
	Fence      int64     // never falls
	Owner      string    // who holds it; "" = nobody
	LeaseUntil time.Time // until when, by the store's clock; zero = nobody
	Budget     string    // which budget its reservation counts against; "" = none
	ReserveMB  int64     // counts until the task is over
	CreatedAt  time.Time
	UpdatedAt  time.Time // of the last change, by the store's clock
	Body       []byte    // JSON, opaque here; nil = none
	ReadAt     time.Time // the store's clock when it was read or written; not kept
}

// TaskQuery says which tasks. The zero value is all of them.
type TaskQuery struct {
	Prefix string    // of the id
	Live   bool      // only those that are not over
	Since  time.Time // created then or later
	Limit  int       // 0 = all
}

// Doc is a small document of some room: a breaker's state, a pool's entry. Kind and
// Key have at most 1 KiB.
type Doc struct {
	Kind, Key string
	Version   int64     // grows with every change; 0 = there is none
	Body      []byte    // JSON, opaque here; nil = none
	UpdatedAt time.Time // by the store's clock
	ReadAt    time.Time // the store's clock when it was read or written; not kept
}

// What a conditional update met instead of what it expected.
var (
	ErrSwapped = errors.New("somebody else changed it meanwhile")
	ErrOver    = errors.New("it is over, and never changes again")
	ErrBudget  = errors.New("it does not fit into the budget")
)

// holds says whether a query, except for its limit, wants a task.
func (q TaskQuery) holds(t Task) bool {
	return strings.HasPrefix(t.ID, q.Prefix) && !t.CreatedAt.Before(q.Since) && (!q.Live || !t.Over)
}

// byCreation is newest first.
func byCreation(a, b Task) int {
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
}
