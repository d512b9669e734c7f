package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"time"
)

// The shape of the measurement of full-screen programs.
const (
	viewRows    = 10_000
	viewStalled = 5 * time.Second  // each answer takes, until a first frame
	viewSettled = 20 * time.Second // from the start until the memory is read
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
	if err := s.firstFrames(t, server, v, min(runs, v.starts)); err != nil {
		return err
	}
	for _, f := range v.fleets {
		if err := s.viewFleet(t, server, v, f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// firstFrames times the start, while the API has answered nothing yet.
func (s stage) firstFrames(t *table, server string, v viewer, runs int) error {
	at, err := v.fleets[0].open(server, viewStalled)
	if err != nil {
		return err
	}
	var frames []float64
	for range runs {
		screen, err := s.show(v, at)
		if err != nil {
			return err
		}
		took, err := screen.await(v.frame)
		screen.close()
		if err != nil {
			return err
		}
		frames = append(frames, took)
	}
	t.add(v.name+": first frame, no answer yet", v.budgets.frame, "ms", frames...)
	return nil
}

// viewFleet reads memory, processor time and what is written, while polling and while paused.
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
	time.Sleep(viewSettled - time.Since(screen.begun))
	peak, err := memory(screen.cmd.Process.Pid, "VmHWM")
	if err != nil {
		return err
	}
	name := v.name + " of " + f.name
	t.add(fmt.Sprintf("%s: peak memory after %s", name, viewSettled), v.budgets.peak, "MB", peak*1024/1e6)
	before, err := f.rounds(server, at)
	if err != nil {
		return err
	}
	drawn := screen.written()
	if err := screen.busy(t, name+": processor time while polling"); err != nil {
		return err
	}
	after, err := f.rounds(server, at)
	if err != nil {
		return err
	}
	if after > before {
		t.add(name+": written to the terminal for each refresh", v.budgets.bytes, "kB", (screen.written()-drawn)/(after-before)/1000)
	}
	if v.paused == "" {
		return nil
	}
	if err := screen.press("p"); err != nil {
		return err
	}
	if _, err := screen.await(v.paused); err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // until what was in flight has ended
	return screen.busy(t, name+": processor time while paused")
}

// show starts a program on a world.
func (s stage) show(v viewer, at string) (*screen, error) {
	cmd, err := v.start(s, at)
	if err != nil {
		return nil, err
	}
	return openScreen(cmd)
}

// busy watches the program for its share of a core.
func (s *screen) busy(t *table, what string) error {
	before, err := onProcessor(s.cmd.Process.Pid)
	if err != nil {
		return err
	}
	began := time.Now()
	time.Sleep(viewWatched)
	took := since(began)
	after, err := onProcessor(s.cmd.Process.Pid)
	t.add(what, "", "% of a core", 100*(after-before)/took)
	return err
}

// open makes the world of a fleet, and gives its address.
func (f fleet) open(server string, takes time.Duration) (string, error) {
	if f.kind == "" {
		return "", nil
	}
	at, err := ask(http.MethodPost, fmt.Sprintf("%s/%s/%d?takes=%s&age=%s", server, f.kind, viewRows, takes, f.age))
	return string(at), err
}

// rounds is how often a fleet was read so far, by the pages that its world has served.
func (f fleet) rounds(server, at string) (float64, error) {
	if f.kind == "" {
		return 0, nil
	}
	raw, err := ask(http.MethodGet, server+"/"+at)
	if err != nil {
		return 0, err
	}
	var t tally
	err = json.Unmarshal(raw, &t)
	return float64(t.Kinds["list"]) / (viewRows / pageRows), err
}
