package kubernetes

import (
	"context"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers/wirekit"
)

// nameLists are the lists by which names that are asked for at a time share the answer that a kind lacks them.
type nameLists struct {
	mu  sync.Mutex
	all map[string]*nameList // by the plural of the kind
}

// nameList is the last list of one kind.
type nameList struct {
	turn chan struct{} // held while the kind is asked, and to use what is below

	began   time.Time       // of the list
	names   map[string]bool // nil = it was not whole
	unfit   time.Time       // no list is tried before: there are too many objects, or they may not be listed
	waiting int             // calls that wait for their turn; guarded by nameLists.mu
}

func (l *nameLists) of(k kind) *nameList {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]*nameList{}
	}
	one, known := l.all[k.plural]
	if !known {
		one = &nameList{turn: make(chan struct{}, 1)}
		l.all[k.plural] = one
	}
	return one
}

// count adds to the calls that wait, and gives how many these are.
func (l *nameLists) count(one *nameList, more int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.waiting += more
	return one.waiting
}

// objectNamed reads an object by its name. Where several names are asked for at a time, a list says of all of them
// whether the kind lacks them: it begins after each of these calls, and is whole.
func (c *Client) objectNamed(ctx context.Context, op string, k kind, name string) (wireObject, error) {
	if version, err := c.version(ctx, op, k); err != nil || version == "" || k.name == podKind().name { // what has the name is mostly a pod
		return c.getObject(ctx, op, k, version, name)
	}
	asked, one := time.Now(), c.names.of(k)
	c.names.count(one, 1)
	select {
	case one.turn <- struct{}{}:
	case <-ctx.Done():
		c.names.count(one, -1)
		return wireObject{}, wirekit.ContextFault(ctx)
	}
	others := c.names.count(one, -1)
	if others == 0 && !one.began.After(asked) { // those that come meanwhile wait, so that they are several
		defer func() { <-one.turn }()
		return c.getObject(ctx, op, k, "", name)
	}
	if !one.began.After(asked) && !time.Now().Before(one.unfit) {
		one.began, one.names = time.Now(), c.namesOf(ctx, op, k)
		if one.names == nil && ctx.Err() == nil {
			one.unfit = time.Now().Add(discoveryAge)
		}
	}
	lacks := one.began.After(asked) && one.names != nil && !one.names[name]
	<-one.turn
	if lacks {
		return wireObject{}, c.Fault(fault.KindNotFound, op, "there is no %s %q", k.kind, name)
	}
	return c.getObject(ctx, op, k, "", name)
}

// namesOf are the names of all objects of a kind; nil where they are more than a page, or cannot be read.
func (c *Client) namesOf(ctx context.Context, op string, k kind) map[string]bool {
	version, err := c.version(ctx, op, k)
	if err != nil || version == "" {
		return nil
	}
	page, _, err := readPage(ctx, c, httpx.Request{Op: op, Path: c.path(k, version), Once: true}, "", func(o wireObject) string { return o.Metadata.UID })
	if err != nil || page.Next != "" {
		return nil
	}
	names := map[string]bool{}
	for _, row := range page.Rows {
		names[row.Metadata.Name] = true
	}
	return names
}
