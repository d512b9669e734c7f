package policy

import (
	"encoding/json"
	"time"
)

// The rules of a shared breaker.
const (
	// SharedFaults and half of the calls must be faults within SharedWindow, to the
	// second, before it opens.
	SharedFaults = 5
	SharedWindow = 60 * time.Second
	// SharedOpen is how long it stays open first; each failed probe doubles that
	// up to SharedOpenMax.
	SharedOpen    = 30 * time.Second
	SharedOpenMax = 10 * time.Minute
	// SharedProbe is how long one probe has. A prober that died frees it by time.
	SharedProbe = 30 * time.Second
)

// maxTally bounds a count that was read from a store.
const maxTally = 1 << 20

// circuit is the state of one shared breaker. All its times are by the store's
// clock. Its methods change nothing: they give the next state.
type circuit struct {
	// Generation grows with each change between closed, open and probing; a result
	// that belongs to an earlier one says nothing of this one.
	Generation int64   `json:"generation"`
	Open       bool    `json:"open"`
	Window     []tally `json:"window,omitempty"` // of the closed state, oldest first

	OpenedAt  int64  `json:"opened_at_ms,omitempty"`
	OpenUntil int64  `json:"open_until_ms,omitempty"`
	OpenFor   int64  `json:"open_for_ms,omitempty"`
	Faults    int    `json:"faults,omitempty"` // what opened it
	Calls     int    `json:"calls,omitempty"`
	Probe     *probe `json:"probe,omitempty"`
}

// tally counts the calls that ended in one second.
type tally struct {
	At    int64 `json:"at"` // Unix seconds
	Good  int   `json:"good,omitempty"`
	Fault int   `json:"fault,omitempty"`
}

// probe is the lease of the one process that may call.
type probe struct {
	Who   string `json:"who"`
	Until int64  `json:"until_ms"`
}

// verdict is the answer to one that wants to call.
type verdict struct {
	allowed bool
	probe   bool          // it is the one
	wait    time.Duration // if not allowed: until asking makes sense again
}

// decode reads a state. One that cannot be read, or was never written, is closed;
// figures that no rule can have set are mended.
func decode(body []byte) circuit {
	var c circuit
	if len(body) == 0 || json.Unmarshal(body, &c) != nil {
		return circuit{}
	}
	if len(c.Window) > int(2*SharedWindow/time.Second) {
		c.Window = nil
	}
	for i := range c.Window {
		c.Window[i].Good = bounded(c.Window[i].Good)
		c.Window[i].Fault = bounded(c.Window[i].Fault)
	}
	if c.Open {
		c.Faults, c.Calls = bounded(c.Faults), bounded(c.Calls)
		c.OpenFor = max(SharedOpen.Milliseconds(), min(c.OpenFor, SharedOpenMax.Milliseconds()))
		return c
	}
	return circuit{Generation: c.Generation, Window: c.Window}
}

func bounded(n int) int { return max(0, min(n, maxTally)) }

// ask lets who call, or not. Only a granted probe changes the state.
func (c circuit) ask(who string, now time.Time) (circuit, verdict) {
	if !c.Open {
		return c, verdict{allowed: true}
	}
	if wait := left(c.OpenUntil, now, SharedOpenMax); wait > 0 {
		return c, verdict{wait: wait}
	}
	if wait := c.probing(now); wait > 0 {
		return c, verdict{wait: wait}
	}
	c.Generation++
	c.Probe = &probe{Who: who, Until: now.Add(SharedProbe).UnixMilli()}
	return c, verdict{allowed: true, probe: true}
}

// probing is how long the probe in flight still has; 0 = there is none.
func (c circuit) probing(now time.Time) time.Duration {
	if c.Probe == nil {
		return 0
	}
	return left(c.Probe.Until, now, SharedProbe)
}

// left is the time until a moment, 0 when it is past. One much further away than
// the rules allow is past too: the clock was set back, or the state is not ours.
func left(until int64, now time.Time, most time.Duration) time.Duration {
	ms := until - now.UnixMilli()
	if ms <= 0 || ms > 2*most.Milliseconds() {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// told takes the result of a call that was allowed in a generation; false when it
// changes nothing.
func (c circuit) told(generation int64, r Result, now time.Time) (circuit, bool) {
	switch {
	case generation != c.Generation:
		return c, false
	case c.Open && c.Probe != nil:
		return c.probed(r, now), true
	case c.Open || r == ResultNeutral:
		return c, false
	}
	return c.counted(r, now), true
}

// probed ends the probe in flight.
func (c circuit) probed(r Result, now time.Time) circuit {
	c.Generation++
	c.Probe = nil
	switch r {
	case ResultGood:
		return circuit{Generation: c.Generation}
	case ResultFault:
		c.OpenFor = min(2*c.OpenFor, SharedOpenMax.Milliseconds())
		c.OpenUntil = now.UnixMilli() + c.OpenFor
	case ResultNeutral:
	}
	return c
}

// counted adds a result to the window of a closed breaker and opens it when that
// is one too many.
func (c circuit) counted(r Result, now time.Time) circuit {
	second := now.Unix()
	one := tally{At: second}
	sum := tally{}
	var window []tally
	for _, t := range c.Window {
		if age := second - t.At; age >= seconds(SharedWindow) || age <= -seconds(SharedWindow) {
			continue
		}
		if t.At == second {
			one.Good, one.Fault = one.Good+t.Good, one.Fault+t.Fault
			continue
		}
		window = append(window, t)
		sum.Good, sum.Fault = sum.Good+t.Good, sum.Fault+t.Fault
	}
	if r == ResultFault {
		one.Fault++
	} else {
		one.Good++
	}
	c.Window = append(window, one)
	sum.Good, sum.Fault = sum.Good+one.Good, sum.Fault+one.Fault
	if r == ResultFault && sum.Fault >= SharedFaults && sum.Fault >= sum.Good {
		return c.opened(sum, now)
	}
	return c
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

func (c circuit) opened(seen tally, now time.Time) circuit {
	return circuit{
		Generation: c.Generation + 1, Open: true, Faults: seen.Fault, Calls: seen.Fault + seen.Good,
		OpenedAt: now.UnixMilli(), OpenFor: SharedOpen.Milliseconds(), OpenUntil: now.Add(SharedOpen).UnixMilli(),
	}
}
