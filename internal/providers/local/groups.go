package local

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"sbx/internal/providers/local/cgroup"
)

// dropGroup ends and removes the control groups of a sandbox whose record
// cannot say where they are: their names do.
func (c *Client) dropGroup(ctx context.Context, id string) error {
	return c.eachStray(func(other string) bool { return other != id }, func(g *cgroup.Group) error {
		if _, err := g.Kill(ctx); err != nil {
			return err
		}
		return g.Remove()
	})
}

// tidyGroups removes empty control groups of this state folder whose sandbox
// has no folder any more. One that still holds processes is left alone: a
// folder that is not to be seen, on a volume that is not mounted, proves no
// orphan.
func (c *Client) tidyGroups() error {
	known := func(id string) bool {
		_, err := os.Lstat(c.store.Dir(id))
		return !errors.Is(err, fs.ErrNotExist)
	}
	return c.eachStray(known, func(g *cgroup.Group) error {
		if empty, err := g.Empty(); err != nil || !empty {
			return err
		}
		return g.Remove()
	})
}

// eachStray visits the groups of this state folder that known does not know.
func (c *Client) eachStray(known func(id string) bool, do func(*cgroup.Group) error) error {
	host, err := cgroup.Detect(cgroup.Roots{Proc: "/proc", Owner: c.store.Owner()}, 0)
	if err != nil {
		return err
	}
	stray, err := cgroup.Orphans(host, known)
	if err != nil {
		return err
	}
	var failed []error
	for _, state := range stray {
		group, err := cgroup.Reopen(state)
		if err == nil {
			err = do(group)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
