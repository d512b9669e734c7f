package policy

import (
	"encoding/json"
	"time"
)

// The rules of a shared breaker.
const (
	// A breaker opens when SharedFaults calls, and half of all calls, were faults within
	// SharedWindow, which has whole seconds.
	SharedFaults = 5
	SharedWindow = 60 * time.Second
	// SharedOpen is a breaker's first open time; each failed probe doubles it up to
	// SharedOpenMax.
	SharedOpen    = 30 * time.Second
	SharedOpenMax = 10 * time.Minute
	// SharedProbe is the time of one probe. That of a dead process ends with it.
	SharedProbe = 30 * time.Second
)

// maxTally bounds a count that was read from a store.
const maxTally = 1 << 20

// circuit is the state of one shared breaker. All its times are by the store's clock. Its
// methods return the next state and change nothing.
type circuit struct {
	// Generation grows with each change between closed, open and probing; a result of an
	// earlier generation is ignored.
	Generation int64         `json:"generation"`
	Open       bool          `json:"open"`
	Window     []secondCount `json:"window,omitempty"` // of the closed state, oldest first

	OpenedAt  int64       `json:"opened_at_ms,omitempty"`
	OpenUntil int64       `json:"open_until_ms,omitempty"`
	OpenFor   int64       `json:"open_for_ms,omitempty"`
	Faults    int         `json:"faults,omitempty"` // that opened it
	Calls     int         `json:"calls,omitempty"`
	Probe     *probeLease `json:"probe,omitempty"`
}

// secondCount counts the calls that ended in one second.
type secondCount struct {
	At    int64 `json:"at"` // Unix seconds
	Good  int   `json:"good,omitempty"`
	Fault int   `json:"fault,omitempty"`
}

// probeLease is the lease of the one process that may call.
type probeLease struct {
	Who   string `json:"who"`
	Until int64  `json:"until_ms"`
}

// permission is the answer to a process that wants to call.
type permission struct {
	allowed bool
	probe   bool          // its call is the probe
	wait    time.Duration // if not allowed: the time until the next question is useful
}

// decodeCircuit decodes a state. An unreadable or missing one is closed; impossible figures
// are corrected.
func decodeCircuit(body []byte) circuit {
	var c circuit
	if len(body) == 0 || json.Unmarshal(body, &c) != nil {
		return circuit{}
	}
	if len(c.Window) > int(2*SharedWindow/time.Second) {
		c.Window = nil
	}
	for i := range c.Window {
		c.Window[i].Good = withinBounds(c.Window[i].Good)
		c.Window[i].Fault = withinBounds(c.Window[i].Fault)
	}
	if c.Open {
		c.Faults, c.Calls = withinBounds(c.Faults), withinBounds(c.Calls)
		c.OpenFor = max(SharedOpen.Milliseconds(), min(c.OpenFor, SharedOpenMax.Milliseconds()))
		return c
	}
	return circuit{Generation: c.Generation, Window: c.Window}
}

func withinBounds(n int) int { return max(0, min(n, maxTally)) }

// askPermission allows or refuses a call. Only a granted probe changes the state.
func (c circuit) askPermission(who string, now time.Time) (circuit, permission) {
	if !c.Open {
		return c, permission{allowed: true}
	}
	if wait := timeUntil(c.OpenUntil, now, SharedOpenMax); wait > 0 {
		return c, permission{wait: wait}
	}
	if wait := c.probeTimeLeft(now); wait > 0 {
		return c, permission{wait: wait}
	}
	c.Generation++
	c.Probe = &probeLease{Who: who, Until: now.Add(SharedProbe).UnixMilli()}
	return c, permission{allowed: true, probe: true}
}

// probeTimeLeft is the remaining time of the probe in progress; 0 = there is none.
func (c circuit) probeTimeLeft(now time.Time) time.Duration {
	if c.Probe == nil {
		return 0
	}
	return timeUntil(c.Probe.Until, now, SharedProbe)
}

// timeUntil is the time until a moment, 0 when it has passed. A moment further away than
// the rules allow counts as passed: the clock was set back, or the state is foreign.
func timeUntil(until int64, now time.Time, most time.Duration) time.Duration {
	ms := until - now.UnixMilli()
	if ms <= 0 || ms > 2*most.Milliseconds() {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// withResult applies the result of a call that was allowed in a generation; false when it
// changes nothing.
func (c circuit) withResult(generation int64, r Result, now time.Time) (circuit, bool) {
	switch {
	case generation != c.Generation:
		return c, false
	case c.Open && c.Probe != nil:
		return c.endProbe(r, now), true
	case c.Open || r == ResultNeutral:
		return c, false
	}
	return c.countResult(r, now), true
}

func (c circuit) endProbe(r Result, now time.Time) circuit {
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

// countResult adds a result to the window of a closed breaker, and opens it when the limit
// is reached.
func (c circuit) countResult(r Result, now time.Time) circuit {
	second := now.Unix()
	one := secondCount{At: second}
	sum := secondCount{}
	var window []secondCount
	for _, t := range c.Window {
		if age := second - t.At; age >= windowSeconds(SharedWindow) || age <= -windowSeconds(SharedWindow) {
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
		return c.openCircuit(sum, now)
	}
	return c
}

func windowSeconds(d time.Duration) int64 { return int64(d / time.Second) }

func (c circuit) openCircuit(seen secondCount, now time.Time) circuit {
	return circuit{
		Generation: c.Generation + 1, Open: true, Faults: seen.Fault, Calls: seen.Fault + seen.Good,
		OpenedAt: now.UnixMilli(), OpenFor: SharedOpen.Milliseconds(), OpenUntil: now.Add(SharedOpen).UnixMilli(),
	}
}
