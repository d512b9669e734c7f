package task_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// remote is one process's publisher: a fence ref that is created once, so that the first
// wins, or a command without a fence.
type remote struct{ p *proc }

func (r remote) Prepare(ctx context.Context, _ task.Task) (string, error) {
	return "base", r.p.call(ctx, "remote", "prepare", func() {})
}

func (r remote) Collect(ctx context.Context, t task.Task, _ task.Exec) (task.Collected, error) {
	alive, s := false, r.p.s
	found := s.Roll("nothing", t.ID) > 0.1
	var lied error
	err := r.p.call(ctx, "cloud", "collect", func() {
		b := s.find(t.Last().Sandbox)
		_, lied = s.insideOf(b)
		if alive = b.alive(time.Now()); alive && found && lied == nil {
			s.saved[t.ID] = r.bundle(t)
		}
	})
	if err == nil && lied != nil {
		return task.NothingToPublish, lied
	}
	if err == nil && !alive {
		err = absent(t.Last().Sandbox)
	}
	return task.Collected(found), err
}

// bundle names the saved work of a task's last attempt on this host.
func (r remote) bundle(t task.Task) string { return fmt.Sprint(r.p.host, " ", len(t.Attempts)) }

func (r remote) Saved(t task.Task) bool {
	r.p.s.mu.Lock()
	defer r.p.s.mu.Unlock()
	return r.p.s.saved[t.ID] == r.bundle(t)
}

func (r remote) Publish(ctx context.Context, t task.Task) (task.Publish, error) {
	s := r.p.s
	if !r.PushesToGit(t) {
		err := r.p.call(ctx, "remote", "command", func() { s.onPublished(r.p, t.ID) })
		if err != nil {
			return task.Publish{State: task.PublishBegun}, err
		}
		return task.Publish{State: task.PublishDone, Commit: "c"}, nil
	}
	seen, err := ask(ctx, r.p, "remote", "look", func() (string, error) { return s.fences[t.ID], nil })
	if err != nil {
		return task.Publish{State: task.PublishBegun}, err
	}
	if seen == "" {
		err := r.p.call(ctx, "remote", "push", func() {
			if s.fences[t.ID] == "" {
				s.fences[t.ID] = "published"
				s.onPublished(r.p, t.ID)
			}
			seen = s.fences[t.ID]
		})
		if err != nil {
			return task.Publish{State: task.PublishBegun}, err
		}
	}
	return verdict(seen), nil
}

func verdict(seen string) task.Publish {
	if seen == "published" {
		return task.Publish{State: task.PublishDone, Commit: "c"}
	}
	return task.Publish{State: task.PublishRefused, Message: "it was stopped"}
}

func (r remote) Resolve(ctx context.Context, t task.Task, _ string) (task.Publish, error) {
	if !r.PushesToGit(t) {
		return task.Publish{State: task.PublishUnknown}, nil
	}
	s, seen := r.p.s, ""
	err := r.p.call(ctx, "remote", "poison", func() {
		if s.fences[t.ID] == "" {
			s.fences[t.ID] = "stopped"
			s.Logf("%s poisons the fence of %s", r.p, t.ID)
		}
		seen = s.fences[t.ID]
	})
	if err != nil {
		return task.Publish{}, err
	}
	return verdict(seen), nil
}

// Of a branch the remote keeps the state: absent, made, forbidden (never to be made), removed, or moved by the
// publication.
func (r remote) PlanBranch(ctx context.Context, _ task.Task) (string, error) {
	return "c0", r.p.call(ctx, "remote", "look", func() {})
}

func (r remote) MakeBranch(ctx context.Context, t task.Task) (string, bool, error) {
	s, held := r.p.s, ""
	err := r.p.call(ctx, "remote", "push", func() {
		if s.branches[t.ID] == "" {
			s.branches[t.ID] = "made"
			s.onBranch(r.p, t.ID)
		}
		held = s.branches[t.ID]
	})
	if err == nil && held != "made" {
		return "", true, fault.New(fault.KindRefused, "it was stopped")
	}
	return "c0", false, err
}

func (r remote) RemoveBranch(ctx context.Context, t task.Task, _ string) (string, error) {
	s, end := r.p.s, "removed"
	err := r.p.call(ctx, "remote", "poison", func() {
		switch s.branches[t.ID] {
		case "made":
			s.branches[t.ID] = "removed"
		case "":
			s.branches[t.ID] = "forbidden"
		case "moved":
			end = "moved"
		}
	})
	return end, err
}

func (r remote) PushesToGit(t task.Task) bool { return t.Spec.Push != "" }

func (r remote) Forget(task.Task) {}

// breaker admits attempts, and checks that it gets one result for each.
type breaker struct{ p *proc }

func (b breaker) Allow(_ context.Context, _ string) (task.Permit, error) {
	p := b.p
	if err := p.gate("allow"); err != nil {
		return task.Permit{}, err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.s.harm("breaker", "allow", "open") != "" {
		return task.Permit{}, fault.New(fault.KindRefused, "open")
	}
	p.open++
	told := false
	return task.Permit{Done: func(_ context.Context, class sandbox.Class) {
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		if told {
			p.s.Breakf("%s tells the breaker twice of one attempt", p)
		}
		told = true
		p.open--
		p.s.onTold(p, class)
	}}, nil
}

func isRaw(err error) bool {
	return err != nil && fault.KindOf(err) == fault.KindUnknown && !errors.Is(err, errDead)
}
