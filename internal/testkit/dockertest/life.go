package dockertest

import (
	"slices"
	"strconv"
	"syscall"
	"time"

	"sbx/internal/testkit/wiretest"
)

// run starts the main program of a container. The lock is held.
func (f *Fake) run(b *box) error {
	if b.machine == nil {
		b.machine = wiretest.NewMachine(f.t, f.o.Shell)
	}
	if f.o.Virtual {
		b.state, b.started = "running", f.o.Now()
		f.note(b, "start", nil)
		return nil
	}
	args := append(slices.Clone(b.entrypoint), b.cmd...)
	main, err := b.machine.Start(wiretest.Process{Args: args, Env: b.env, Stdout: f.logTo(b, 1), Stderr: f.logTo(b, 2)})
	if err != nil {
		return err
	}
	b.main, b.state, b.started, b.stopping = main, "running", f.o.Now(), false
	f.note(b, "start", nil)
	go f.awaitEnd(b, main)
	return nil
}

// awaitEnd records the end of a main program. All else in the container ends with it.
func (f *Fake) awaitEnd(b *box, main *wiretest.Running) {
	code, signal := main.Wait()
	if signal != 0 {
		code = 128 + int(signal)
	}
	b.machine.Stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	b.code, b.finished, b.state, b.machine = code, f.o.Now(), f.exitedWord(), nil
	f.note(b, "die", map[string]string{"exitCode": strconv.Itoa(code)})
	switch {
	case b.remove:
		f.drop(b)
	case b.restart == "always" && !b.stopping:
		b.restarts++
		b.code, b.oom = 0, false // the record is that of the new run
		if err := f.run(b); err != nil {
			f.t.Errorf("restart: %v", err)
		}
	}
	f.change.Broadcast()
}

// start starts a container again, as somebody else's request does.
func (f *Fake) start(b *box) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.run(b); err != nil {
		f.t.Errorf("start: %v", err)
	}
}

// RestartEngine starts what the restart policies of stopped containers start when the engine does.
func (f *Fake) RestartEngine() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.boxes {
		if b.runs() || b.restart != "always" && (b.restart != "unless-stopped" || b.stopping) {
			continue
		}
		if err := f.run(b); err != nil {
			f.t.Errorf("restart of the engine: %v", err)
		}
	}
}

// StartedBefore makes a container one that was started so long ago.
func (f *Fake) StartedBefore(id string, ago time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.find(id).started = f.o.Now().Add(-ago)
}

// PauseAndGoOn pauses a container for a moment, as somebody else's requests do.
func (f *Fake) PauseAndGoOn(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note(f.find(id), "pause", nil)
	f.note(f.find(id), "unpause", nil)
}

func (f *Fake) exitedWord() string {
	if f.o.Podman {
		return "stopped"
	}
	return "exited"
}

// drop removes the record of a container. The lock is held.
func (f *Fake) drop(b *box) {
	f.boxes = slices.DeleteFunc(f.boxes, func(o *box) bool { return o == b })
	f.note(b, "destroy", nil)
	f.change.Broadcast()
}

// end stops a main program: TERM, and KILL after the grace. The lock is held, and released while it waits.
func (f *Fake) end(b *box, grace time.Duration) {
	b.stopping = true
	if f.o.EndFor > 0 {
		f.mu.Unlock()
		select {
		case <-time.After(f.o.EndFor):
		case <-f.Ended():
		}
		f.mu.Lock()
	}
	if b.main == nil { // nothing runs in it but commands
		if b.machine != nil {
			go b.machine.Stop()
			b.machine = nil
		}
		b.state, b.finished, b.code = f.exitedWord(), f.o.Now(), 137
		f.note(b, "die", map[string]string{"exitCode": "137"})
		switch {
		case b.remove:
			f.drop(b)
		case b.watched > 0:
			time.AfterFunc(b.watched, func() { f.start(b) })
		}
		return
	}
	main, machine := b.main, b.machine
	f.mu.Unlock()
	defer f.mu.Lock()
	_ = main.Signal(syscall.SIGTERM)
	select {
	case <-main.Done():
	case <-time.After(grace):
		_ = main.Signal(syscall.SIGKILL)
		machine.Stop()
	}
	f.mu.Lock()
	for b.state == "running" || b.state == "paused" {
		f.change.Wait()
	}
	f.mu.Unlock()
}

// Kill sends SIGKILL to the main program of a container, from outside.
func (f *Fake) Kill(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.find(id); b != nil && b.main != nil {
		_ = b.main.Signal(syscall.SIGKILL)
	}
}

// SetState makes a container what the engine's word says, as its restart policy would.
func (f *Fake) SetState(id, word string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.find(id).state = word
}

// Lose drops the record of a container whose program runs on, as after a crash of the engine.
func (f *Fake) Lose(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loseBox(id)
}

// loseBox drops a record. The lock is held.
func (f *Fake) loseBox(id string) {
	for _, b := range f.boxes {
		if b.id == id {
			f.lost = append(f.lost, b)
		}
	}
	f.boxes = slices.DeleteFunc(f.boxes, func(b *box) bool { return b.id == id })
}
