package kubernetestest

import (
	"slices"
	"strconv"
	"syscall"
	"time"

	"sbx/internal/testkit/wiretest"
)

// Lose drops the records of a sandbox whose program runs on, as after somebody has deleted a pod with no grace.
func (f *Fake) Lose(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loseThing(f.findID(id))
}

func (f *Fake) loseThing(o *thing) {
	pods := f.podsOf(o)
	f.lost = append(f.lost, pods...)
	f.drop(o, pods)
}

// Replace makes an object again under the same name, with another uid, and returns the id.
func (f *Fake) Replace(id string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.findID(id)
	again := f.newThing(o.plural, o.name)
	again.phase, again.spec, again.started = "Running", o.spec, f.o.Now()
	f.drop(o, f.podsOf(o))
	f.things = append(f.things, again)
	return again.id()
}

// Processes are the commands that run in a sandbox beside its main program, for a test to kill.
func (f *Fake) Processes(id string) []*wiretest.Running {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.findID(id)
	if o == nil {
		return nil
	}
	var all []*wiretest.Running
	for _, p := range f.podsOf(o) {
		for _, r := range f.execs[p] {
			if !r.HasEnded() {
				all = append(all, r)
			}
		}
	}
	return all
}

// Runs says whether a sandbox runs, whatever the API shows.
func (f *Fake) Runs(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(slices.Concat(f.things, f.lost), func(p *thing) bool {
		return p.plural == "pods" && p.phase == "Running" && !p.done && (p.id() == id || p.owner != nil && p.owner.id() == id)
	})
}

// Running is the number of pods that run.
func (f *Fake) Running() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range slices.Concat(f.things, f.lost) {
		if p.plural == "pods" && p.phase == "Running" && !p.done {
			n++
		}
	}
	return n
}

// Kill sends SIGKILL to the main program of a sandbox.
func (f *Fake) Kill(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.podsOf(f.findID(id)) {
		_ = p.main.Signal(syscall.SIGKILL)
	}
}

// Say adds lines to the log of a sandbox, as its main program would.
func (f *Fake) Say(id string, at time.Time, lines ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.podsOf(f.findID(id)) {
		for _, text := range lines {
			p.log = append(p.log, entry{at, text})
		}
	}
	f.change.Broadcast()
}

// MakePods ends NoPods: the controllers make the pods that were refused.
func (f *Fake) MakePods() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.o.NoPods = ""
	for _, o := range slices.Clone(f.things) {
		if (o.plural == "jobs" || o.plural == "sandboxes") && len(f.podsOf(o)) == 0 {
			f.things = append(f.things, f.newPodOf(o))
		}
	}
	f.kubelet()
}

// Note records events of an object, each a second later than the one before. Their names have no order in time.
func (f *Fake) Note(id, reason string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	began := f.o.Now
	defer func() { f.o.Now = began }()
	for i := range n {
		f.o.Now = func() time.Time { return began().Add(time.Duration(i-n) * time.Second) }
		f.note(f.findID(id), reason, strconv.Itoa(i))
	}
	slices.Reverse(f.events)
}

// Adopt gives an object a controller, as a controller does whose selector begins to match it.
func (f *Fake) Adopt(id, owner string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.findID(id)
	o.owner = f.findID(owner)
	f.touch(o)
}

// End deletes an object as somebody else does.
func (f *Fake) End(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.findID(id)
	f.end(o, o.ownGrace())
}

// Annotate sets the annotations of an object.
func (f *Fake) Annotate(id string, annotations map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.findID(id)
	o.annotations = annotations
	f.touch(o)
}

// setEnd sets the end of an object where its kind has it. The lock is held.
func (f *Fake) setEnd(o *thing, at time.Time) {
	switch o.plural {
	case "sandboxes":
		o.spec["shutdownTime"] = stamp(at)
	case "sandboxclaims":
		o.spec["lifecycle"] = map[string]any{"shutdownTime": stamp(at), "shutdownPolicy": "Delete"}
	default:
		o.spec["activeDeadlineSeconds"] = int64(at.Sub(o.created).Seconds())
	}
}
