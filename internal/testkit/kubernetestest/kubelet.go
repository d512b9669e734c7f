package kubernetestest

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"sbx/internal/poll"
	"sbx/internal/testkit/wiretest"
)

// kubelet starts the pods that wait. The lock is held.
func (f *Fake) kubelet() {
	for _, p := range f.things {
		if p.plural != "pods" || p.phase != "Pending" || p.waiting != "" || !p.deleted.IsZero() {
			continue
		}
		switch {
		case f.o.NoRoom:
			continue
		case p.mainContainer()["image"] != Image:
			p.waiting = "ImagePullBackOff"
		default:
			f.run(p)
			f.note(p, "Started", "Started container main")
		}
		f.touch(p)
	}
}

func (f *Fake) touch(o *thing) {
	f.version++
	o.version = f.version
	f.changed()
}

// run starts the main program of a pod. The lock is held.
func (f *Fake) run(p *thing) {
	p.phase, p.started = "Running", f.o.Now()
	if f.o.Virtual {
		return
	}
	command, _ := p.mainContainer()["command"].([]any)
	args := make([]string, 0, len(command))
	for _, word := range command {
		args = append(args, fmt.Sprint(word))
	}
	var env []string
	variables, _ := p.mainContainer()["env"].([]any)
	for _, v := range variables {
		if v, ok := v.(map[string]any); ok {
			env = append(env, fmt.Sprint(v["name"], "=", v["value"]))
		}
	}
	p.machine = wiretest.NewMachine(f.t, f.o.Shell)
	main, err := p.machine.Start(wiretest.Process{Args: args, Env: env, Stdout: &logWriter{f: f, p: p}, Stderr: &logWriter{f: f, p: p}})
	if err != nil {
		p.phase, p.code, p.done, p.reason = "Failed", 128, true, "StartError"
		return
	}
	p.main = main
	go f.awaitEnd(p, p.machine)
}

// awaitEnd records the end of a main program. All else in the pod ends with it.
func (f *Fake) awaitEnd(p *thing, machine *wiretest.Machine) {
	code, signal := p.main.Wait()
	if signal != 0 {
		code = 128 + int(signal)
	}
	machine.Stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	p.code, p.finished, p.done, p.phase = code, f.o.Now(), true, "Succeeded"
	if code != 0 {
		p.phase = "Failed"
	}
	f.touch(p)
}

// graceField is the field of a pod that has its own grace.
const graceField = "terminationGracePeriodSeconds"

// ownGrace is the grace of a pod where a delete names none, as those of the garbage collector.
func (o *thing) ownGrace() time.Duration {
	switch seconds := o.spec[graceField].(type) {
	case float64:
		return time.Duration(seconds * float64(time.Second))
	case int64:
		return time.Duration(seconds) * time.Second
	}
	return 30 * time.Second
}

// markDeleted begins the deletion of an object. Only pods have a grace; one that is being deleted already takes a
// shorter one alone, counted from the first request (k8s.io/apiserver, rest.BeforeDelete). The lock is held.
func (f *Fake) markDeleted(o *thing, grace time.Duration) {
	if o.plural != "pods" {
		grace = 0
	}
	switch {
	case o.deleted.IsZero():
		o.deleted, o.grace = f.o.Now().Add(grace), grace
	case grace < o.grace:
		o.deleted, o.grace = o.deleted.Add(grace-o.grace), grace
	}
	f.touch(o)
}

// end ends what a deleted object has, in the background, and removes the records: first of the pods, then of the
// object. Its grace is that of a pod alone: the garbage collector leaves the pods below a controller their own. The
// lock is held.
func (f *Fake) end(o *thing, grace time.Duration) {
	again := !o.deleted.IsZero()
	f.markDeleted(o, grace)
	if again { // what ends it is under way
		return
	}
	pods := f.podsOf(o)
	for _, p := range pods {
		if p != o {
			f.markDeleted(p, p.ownGrace())
		}
		f.note(p, "Killing", "Stopping container main")
	}
	for _, below := range f.things { // the sandbox of a claim
		if below.owner == o && below.plural != "pods" {
			f.markDeleted(below, 0)
		}
	}
	if f.o.LostNode || f.o.Ended {
		return
	}
	wait := f.o.EndFor
	if f.o.Virtual && wait == 0 && !slices.ContainsFunc(pods, func(p *thing) bool { return p.stubborn }) {
		for _, p := range pods {
			f.stop(p)
		}
		f.drop(o, pods)
		return
	}
	go func() {
		_ = poll.Sleep(context.Background(), wait) //nolint:forbidigo // a cluster ends it whether a client waits or not
		for _, p := range pods {
			f.endProgram(p)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.drop(o, pods)
	}()
}

// Conclude does what controllers do when the time of an object is over and its record stays: its conditions say so at
// once, and its pods end as after a delete.
func (f *Fake) Conclude(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.findID(id)
	o.conditions = map[string][]any{
		"jobs":          {condition("Failed", "True", "DeadlineExceeded", "Job was active longer than specified deadline")},
		"sandboxes":     {condition("Ready", "False", "SandboxExpired", "Sandbox has expired")},
		"sandboxclaims": {condition("Ready", "False", "ClaimExpired", "Claim has expired")},
	}[o.plural]
	f.touch(o)
	for _, below := range slices.Clone(f.things) {
		if below.owner == o {
			f.end(below, 30*time.Second)
		}
	}
}

// graceStep is how often the kubelet looks whether a grace is over, which a later delete may shorten.
const graceStep = 20 * time.Millisecond

// endProgram sends TERM, and KILL after the grace.
func (f *Fake) endProgram(p *thing) {
	f.mu.Lock()
	main, machine, done := p.main, p.machine, make(<-chan struct{})
	if main != nil {
		_ = main.Signal(syscall.SIGTERM)
		done = main.Done()
	}
	for (main != nil || p.stubborn) && f.o.Now().Before(p.deleted) {
		f.mu.Unlock()
		select {
		case <-done:
			main, p.stubborn = nil, false
		case <-time.After(graceStep):
		case <-f.Ended():
			main, p.stubborn = nil, false
		}
		f.mu.Lock()
	}
	f.mu.Unlock()
	if main != nil {
		_ = main.Signal(syscall.SIGKILL)
	}
	if machine != nil {
		machine.Stop()
	}
}

func (f *Fake) stop(p *thing) {
	if p.machine != nil {
		go p.machine.Stop()
		p.machine = nil
	}
}

func (f *Fake) drop(o *thing, pods []*thing) {
	f.things = slices.DeleteFunc(f.things, func(x *thing) bool {
		if len(x.finalizers) > 0 && !x.deleted.IsZero() { // what it ran has ended, and its record stays
			x.done, x.phase = true, "Succeeded"
			return false
		}
		return x == o || x.owner == o || slices.Contains(pods, x)
	})
	f.version++
	f.changed()
}
