package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Pool makes sandboxes ahead of the tasks that use them, each for one task (R112, S0-19).
//
// Such a sandbox is made and kept by a task whose program does nothing, so that lost
// answers, crashes and stops are handled as for any other task. It waits for at most half
// of its lifetime and is probed before it is used. Unused ones are ended, and seen to be
// gone, when the Pool closes, or by another process when that of the Pool is dead.
type Pool struct {
	o     Options
	ahead int

	mu     sync.Mutex
	wanted []Spec // specs of tasks that have not begun, in order
	ready  map[string][]sandbox.Ref
	making map[string]int
	broken map[string]bool // shapes that could not be made
	begun  bool
	made   int
	used   int

	life   context.Context //nolint:containedctx // of the makers, which outlive the calls that ask for more
	on     context.Context //nolint:containedctx // ends when no more is made, and what is being made is stopped
	off    context.CancelFunc
	makers sync.WaitGroup
}

// warmUp is the program of a sandbox that is made ahead. Its run shows that the sandbox
// runs programs.
const warmUp = "true"

// NewPool makes a Pool that keeps up to ahead sandboxes ready for tasks of these specs, in
// order. Nothing is made before the first task asks for one. The end of ctx stops the
// making; the end of life leaves everything as it is.
func NewPool(ctx, life context.Context, o Options, ahead int, specs []Spec) *Pool {
	o.Observer = nil
	on, off := context.WithCancel(ctx)
	return &Pool{
		o: o, ahead: ahead, wanted: slices.DeleteFunc(slices.Clone(specs), func(s Spec) bool { return !o.CanPrewarm(s) }),
		ready: map[string][]sandbox.Ref{}, making: map[string]int{}, broken: map[string]bool{}, life: life, on: on, off: off,
	}
}

// CanPrewarm reports whether sandboxes for a spec can be made ahead. They are not on this
// machine, where a create takes milliseconds and an idle sandbox takes memory.
func (o Options) CanPrewarm(s Spec) bool {
	return s.Sandbox.ID == "" && s.Budget == "" && (o.HostBound == nil || !o.HostBound(s.Provider))
}

// prewarmSpec is the spec of a task that makes a sandbox for a task of this spec.
func (s Spec) prewarmSpec() Spec {
	life := s.TTL()
	w := Spec{
		Provider: s.Provider, Command: []string{warmUp}, Warm: true, Name: s.Name,
		Template: s.Template, Snapshot: s.Snapshot, Image: s.Image, Isolate: s.Isolate, HardLimit: s.HardLimit,
		MemoryBytes: s.MemoryBytes, DiskBytes: s.DiskBytes, CPU: s.CPU, PIDs: s.PIDs, Labels: s.Labels,
		Attempts: 1, KeepAlive: life, MinTTL: 2 * life,
		NoForeign: s.NoForeign, NoPolling: s.NoPolling, NoProbe: s.NoProbe,
	}
	w.Limits.Attempt = s.Limits.Attempt
	w.Limits.Deadline = s.Limits.Attempt
	return w
}

// shapeKey is equal for specs that can use the same sandbox.
func (s Spec) shapeKey() string {
	w := s.prewarmSpec()
	w.Name = ""
	return w.Fingerprint()
}

// TaskBegins removes one task of the spec from those for which a sandbox is to be made.
func (p *Pool) TaskBegins(s Spec) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	shape := s.shapeKey()
	if i := slices.IndexFunc(p.wanted, func(w Spec) bool { return w.shapeKey() == shape }); i >= 0 {
		p.wanted = slices.Delete(p.wanted, i, i+1)
	}
}

// takeReady claims a ready sandbox for a task; false = none is ready.
func (p *Pool) takeReady(ctx context.Context, t Task, place string) (sandbox.Ref, bool, error) {
	if p == nil || place != t.Spec.Provider || !p.o.CanPrewarm(t.Spec) {
		return sandbox.Ref{}, false, nil
	}
	for {
		ref, some := p.nextReady(t.Spec.shapeKey())
		if !some {
			return ref, false, nil
		}
		mine, err := p.o.KeepList.Claim(ctx, ref, t.ID)
		if err != nil {
			return ref, false, err
		}
		if mine {
			p.mu.Lock()
			p.used++
			p.mu.Unlock()
			return ref, true, nil
		}
	}
}

func (p *Pool) nextReady(shape string) (sandbox.Ref, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = true
	defer p.startMakers()
	all := p.ready[shape]
	if len(all) == 0 {
		return sandbox.Ref{}, false
	}
	p.ready[shape] = all[1:] // the oldest first
	return all[0], true
}

// startMakers starts to make the missing sandboxes. The lock is held.
func (p *Pool) startMakers() {
	if !p.begun || p.on.Err() != nil {
		return
	}
	have := map[string]int{}
	total := 0
	for shape, n := range p.making {
		have[shape] += n
		total += n
	}
	for shape, all := range p.ready {
		have[shape] += len(all)
		total += len(all)
	}
	for _, s := range p.wanted {
		if total >= p.ahead {
			return
		}
		shape := s.shapeKey()
		if have[shape]--; have[shape] >= 0 || p.broken[shape] {
			continue // one is ready or being made for it
		}
		total++
		p.making[shape]++
		p.makers.Go(func() { p.makeSandbox(s, shape) })
	}
}

// makeSandbox makes one sandbox, and starts the next where one is missing.
func (p *Pool) makeSandbox(s Spec, shape string) {
	ref, err := p.runMaker(s)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.making[shape]--
	switch {
	case err != nil && p.on.Err() == nil && !p.broken[shape]:
		p.broken[shape] = true
		p.noticeOperator("no sandboxes are created ahead at " + s.Provider + " any more: " + err.Error())
	case err == nil:
		p.made++
		p.ready[shape] = append(p.ready[shape], ref)
		p.startMakers()
	}
}

func (p *Pool) noticeOperator(text string) {
	if p.o.Notice != nil {
		p.o.Notice(text)
	}
}

func (p *Pool) runMaker(s Spec) (sandbox.Ref, error) {
	t, _, err := p.o.Ledger.Add(p.on, New(NewID(), "", s.prewarmSpec(), p.o.Owner, time.Now()))
	if err != nil {
		return sandbox.Ref{}, err
	}
	t, err = NewRunner(p.o, nil, p.on.Done()).Run(p.life, t)
	switch {
	case err != nil:
		return sandbox.Ref{}, err
	case t.Kept == nil:
		return sandbox.Ref{}, errors.New("task " + t.ID + " is " + string(t.State) + ": `sbx tasks show " + t.ID + "` has the evidence")
	}
	return t.Kept.Ref, nil
}

// Close ends the unused sandboxes. fault.KindUnverified where that was not seen: the next
// sbx goes on with it.
func (p *Pool) Close(ctx context.Context) error {
	if p == nil {
		return nil
	}
	p.mu.Lock() // no maker starts after this
	p.off()
	p.mu.Unlock()
	p.makers.Wait()
	var left []sandbox.Ref
	for _, some := range p.ready {
		left = append(left, some...)
	}
	for _, ref := range left {
		if _, err := p.o.KeepList.Release(ctx, ref); err != nil {
			return fault.New(fault.KindUnverified, "unused sandboxes that were created ahead could not be released: %w", err).WithHint("the next sbx command terminates it")
		}
	}
	left, _ = p.o.endReleased(ctx, left)
	if len(left) > 0 {
		words := make([]string, len(left))
		for i, ref := range left {
			words[i] = ref.String()
		}
		return fault.New(fault.KindUnverified, "created ahead, not used, and not verified ended: %s", strings.Join(words, ", ")).WithHint("the next sbx command terminates them")
	}
	if p.made > 0 {
		p.noticeOperator(fmt.Sprintf("%d sandboxes were created ahead; %d were used, the others are terminated", p.made, p.used))
	}
	return nil
}
