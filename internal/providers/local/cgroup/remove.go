package cgroup

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"time"
)

// ErrBusy says that a group still has processes, or groups that have.
var ErrBusy = errors.New("control group is in use")

// removeWithin bounds the retries of Remove: a killed process keeps its group
// busy for some milliseconds after it has left the list.
const removeWithin = 500 * time.Millisecond

// Remove removes the directories of the group, and empty groups that the
// program made below them. Counters are gone afterwards. The kernel removes
// only what is empty, so a living process is never touched: ErrBusy. What is
// gone already, or was replaced by a foreign directory, is passed over.
func (g *Group) Remove() error {
	_ = g.Close()
	var failed error
	for _, d := range slices.Backward(g.state.Dirs) {
		if d.Borrowed {
			continue
		}
		if err := g.removeOne(d); err != nil {
			failed = err
		}
	}
	return failed
}

func (g *Group) removeOne(d Dir) error {
	deadline := time.Now().Add(removeWithin)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if inode, err := g.tree.inode(d.Path); gone(err) || (err == nil && inode != d.Inode) {
			return nil
		}
		g.pruneBelow(d.Path, maxDepth)
		err := g.tree.rmdir(d.Path)
		switch {
		case err == nil || gone(err):
			return nil
		case !busy(err):
			return fmt.Errorf("remove control group: %w", err)
		case time.Now().After(deadline):
			return fmt.Errorf("%w: %s", ErrBusy, d.Path)
		}
		timer := time.NewTimer(pause)
		<-timer.C
	}
}

// pruneBelow removes empty groups below a directory; the kernel refuses others.
func (g *Group) pruneBelow(dir string, depth int) {
	if depth == 0 {
		return
	}
	below, err := g.tree.children(dir)
	if err != nil {
		return
	}
	for _, name := range below {
		child := path.Join(dir, name)
		g.pruneBelow(child, depth-1)
		_ = g.tree.rmdir(child)
	}
}

// holder is a directory `sbx` with the hierarchy that it stands in.
type holder struct {
	hierarchy
	path string
}

// holders lists where groups of this host may stand.
func (h Host) holders() []holder {
	var list []holder
	trees := slices.Clone(h.legacy)
	if h.unified != nil {
		trees = append([]hierarchy{*h.unified}, trees...)
	}
	for _, hi := range trees {
		for _, base := range h.bases(hi) {
			list = append(list, holder{hi, path.Join(base, top)})
		}
	}
	return list
}
