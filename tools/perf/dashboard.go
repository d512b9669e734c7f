package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// The shape of the measurement of the dashboard.
const (
	viewRows    = 10_000
	viewStarts  = 20               // to a first frame, at most
	viewStalled = 5 * time.Second  // each answer takes, until a first frame
	viewSettled = 20 * time.Second // from the first full screen until the memory is read
	viewWatched = 15 * time.Second // processor time and bytes are counted over
)

// dashboard measures `sbx dashboard`: its start on the first fleet, the rest on each.
func (s stage) dashboard(t *table, runs int) error {
	server, end, err := serving(worldsWord)
	if err != nil {
		return err
	}
	defer end()
	at, err := fleets()[0].open(server, viewStalled)
	if err != nil {
		return err
	}
	var frames []float64
	for range min(runs, viewStarts) {
		took, err := s.firstFrame(at)
		if err != nil {
			return err
		}
		frames = append(frames, took)
	}
	t.add("`sbx dashboard`: first frame, before an answer of the API", "100", "ms", frames...)
	for _, f := range fleets() {
		if err := s.viewFleet(t, server, f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

func (s stage) firstFrame(at string) (float64, error) {
	screen, err := s.show(at)
	if err != nil {
		return 0, err
	}
	defer screen.close()
	return screen.await("reading ...")
}

func (s stage) show(at string) (*screen, error) {
	cmd, err := s.onE2B(at, "dashboard")
	if err != nil {
		return nil, err
	}
	return openScreen(cmd)
}

// viewFleet measures the dashboard with a whole fleet, while it polls and while it is paused.
func (s stage) viewFleet(t *table, server string, f fleet) error {
	at, err := f.open(server, 0)
	if err != nil {
		return err
	}
	screen, err := s.show(at)
	if err != nil {
		return err
	}
	defer screen.close()
	if _, err := screen.await(fmt.Sprintf("All %d", viewRows)); err != nil {
		return err
	}
	phase := func(when string, d time.Duration) error {
		before, written := rounds(server, at), screen.written
		busy, err := screen.busy(d)
		if err != nil {
			return err
		}
		when = fmt.Sprintf("`sbx dashboard` of %s, %s %s: ", f.name, d, when)
		t.add(when+"processor time", "", "% of a core", busy)
		if n := rounds(server, at) - before; n > 0 {
			t.add(when+"written to the terminal for each refresh", "4", "kB", (screen.written-written)/n/1000)
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
	t.add(fmt.Sprintf("`sbx dashboard` of %s: peak memory until then", f.name), "60", "MB", peak*1024/1e6)
	if err := phase("afterwards", viewWatched); err != nil {
		return err
	}
	_, err = screen.tty.WriteString("p")
	if err == nil {
		_, err = screen.await("PAUSED")
	}
	if err == nil {
		err = screen.watch(2 * time.Second) // until what was in flight has ended
	}
	if err != nil {
		return err
	}
	return phase("paused", viewWatched)
}

// fleet is what the dashboard shows: viewRows sandboxes of a world.
type fleet struct {
	name string
	age  time.Duration
}

func fleets() []fleet {
	return []fleet{{"10,000 that their records decide", time.Minute}, {"10,000 that have to be probed", time.Hour}}
}

// open makes its world, and gives the address.
func (f fleet) open(server string, takes time.Duration) (string, error) {
	at, err := ask(http.MethodPost, fmt.Sprintf("%s/e2b-work/%d?takes=%s&age=%s", server, viewRows, takes, f.age))
	return string(at), err
}

// rounds is how often a fleet was read so far, by the pages that its world has served.
func rounds(server, at string) float64 {
	var t tally
	if raw, err := ask(http.MethodGet, server+"/"+at); err != nil || json.Unmarshal(raw, &t) != nil {
		return 0
	}
	return float64(t.Kinds["list"].N) / (viewRows / pageRows)
}
