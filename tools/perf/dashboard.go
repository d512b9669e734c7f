package main

import (
	"fmt"
	"os/exec"
	"time"
)

// The shape of the measurement of full-screen programs.
const (
	viewRows    = 10_000
	viewStalled = 5 * time.Second  // each answer takes, until a first frame
	viewSettled = 20 * time.Second // from the first full screen until the memory is read
	viewWatched = 15 * time.Second // processor time and bytes are counted over
)

// dashboard measures `sbx dashboard`, and beside it the full-screen programs of others that can run here. What
// stops one of those is its row.
func (s stage) dashboard(t *table, runs int) error {
	server, end, err := serving(worldsWord)
	if err != nil {
		return err
	}
	defer end()
	for i, v := range s.viewers() {
		_, err := exec.LookPath(v.program)
		if err == nil {
			err = s.view(t, server, v, runs)
		}
		if err != nil && i == 0 {
			return err
		}
		if err != nil {
			t.missing(v.name, err)
		}
	}
	return nil
}

// view measures one program: its start on the first of its fleets, the rest on each.
func (s stage) view(t *table, server string, v viewer, runs int) error {
	at, err := v.fleets[0].open(server, viewStalled)
	if err != nil {
		return err
	}
	var frames []float64
	for range min(runs, v.starts) {
		took, err := s.firstFrame(v, at)
		if err != nil {
			return err
		}
		frames = append(frames, took)
	}
	t.add(v.name+": first frame, before an answer of the API", v.budgets.frame, "ms", frames...)
	for _, f := range v.fleets {
		if err := s.viewFleet(t, server, v, f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

func (s stage) firstFrame(v viewer, at string) (float64, error) {
	screen, err := s.show(v, at)
	if err != nil {
		return 0, err
	}
	defer screen.close()
	return screen.await(v.frame)
}

func (s stage) show(v viewer, at string) (*screen, error) {
	cmd, err := v.start(s, at)
	if err != nil {
		return nil, err
	}
	return openScreen(cmd)
}

// viewFleet measures a program with a whole fleet, while it polls and while it is paused.
func (s stage) viewFleet(t *table, server string, v viewer, f fleet) error {
	at, err := f.open(server, 0)
	if err != nil {
		return err
	}
	screen, err := s.show(v, at)
	if err != nil {
		return err
	}
	defer screen.close()
	if _, err := screen.await(v.full); err != nil {
		return err
	}
	phase := func(when string, d time.Duration) error {
		before, written := f.rounds(server, at), screen.written
		busy, err := screen.busy(d)
		if err != nil {
			return err
		}
		when = fmt.Sprintf("%s of %s, %s %s: ", v.name, f.name, d, when)
		t.add(when+"processor time", "", "% of a core", busy)
		if rounds := f.rounds(server, at) - before; rounds > 0 {
			t.add(when+"written to the terminal for each refresh", v.budgets.bytes, "kB", (screen.written-written)/rounds/1000)
		}
		return nil
	}
	if err := phase("after the first whole screen", viewSettled); err != nil {
		return err
	}
	peak, err := memory(screen.cmd.Process.Pid, "VmHWM")
	if err != nil {
		return err
	}
	t.add(fmt.Sprintf("%s of %s: peak memory until then", v.name, f.name), v.budgets.peak, "MB", peak*1024/1e6)
	if err := phase("afterwards", viewWatched); err != nil || v.paused == "" {
		return err
	}
	_, err = screen.tty.WriteString("p")
	if err == nil {
		_, err = screen.await(v.paused)
	}
	if err == nil {
		err = screen.watch(2 * time.Second) // until what was in flight has ended
	}
	if err != nil {
		return err
	}
	return phase("paused", viewWatched)
}
