package cgroup

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
)

// Freeze stops every process of the group where it stands and waits until all
// have. errors.ErrUnsupported when the group has no freezer.
func (g *Group) Freeze(ctx context.Context) error { return g.turn(ctx, true) }

// Thaw lets a frozen group go on.
func (g *Group) Thaw(ctx context.Context) error { return g.turn(ctx, false) }

func (g *Group) turn(ctx context.Context, frozen bool) error {
	if err := g.setFrozen(frozen); err != nil {
		return err
	}
	if d, ok := g.unified(); ok {
		line := "frozen 0"
		if frozen {
			line = "frozen 1"
		}
		return g.awaitKey(ctx, d, line)
	}
	d, _ := g.with("freezer")
	want := "THAWED"
	if frozen {
		want = "FROZEN"
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		text, err := g.file(d, "freezer.state")
		if gone(err) || strings.TrimSpace(text) == want {
			return nil
		}
		if err != nil {
			return err
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
}

// setFrozen asks for the change and does not wait for it.
func (g *Group) setFrozen(frozen bool) error {
	file, value := "", ""
	if d, ok := g.unified(); ok {
		file, value = path.Join(d.Path, "cgroup.freeze"), "0"
		if frozen {
			value = "1"
		}
	} else if d, ok := g.with("freezer"); ok {
		file, value = path.Join(d.Path, "freezer.state"), "THAWED"
		if frozen {
			value = "FROZEN"
		}
	}
	if file == "" {
		return fmt.Errorf("freeze %s: %w", g.state.ID, errors.ErrUnsupported)
	}
	if err := g.tree.write(file, value); err != nil && !gone(err) {
		return err
	}
	return nil
}
