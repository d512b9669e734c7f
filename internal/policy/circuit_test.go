package policy

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// noon is the start of the store's clock in these tests.
func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// happening is one event, seconds after noon: a question or a result.
type happening struct {
	at   float64
	told Result // of a call allowed in the present generation; unless ask
	n    int    // repetitions
	ask  string // "yes", "probe", "no"
	wait time.Duration
}

func TestCircuit(t *testing.T) {
	t.Parallel()
	opened := []happening{{told: ResultFault, n: 5}}
	for name, tc := range map[string][]happening{
		"four faults":             {{told: ResultFault, n: 4}, {ask: "yes"}},
		"five faults":             {{told: ResultFault, n: 4}, {at: 59.9, told: ResultFault, n: 1}, {at: 60, ask: "no", wait: 29900 * time.Millisecond}},
		"five in 61 seconds":      {{told: ResultFault, n: 4}, {at: 60, told: ResultFault, n: 1}, {at: 60, ask: "yes"}},
		"half of them":            {{told: ResultGood, n: 5}, {at: 3, told: ResultFault, n: 5}, {at: 3, ask: "no", wait: SharedOpen}},
		"less than half":          {{told: ResultGood, n: 6}, {at: 3, told: ResultFault, n: 5}, {at: 3, ask: "yes"}},
		"good ones grow old":      {{told: ResultGood, n: 6}, {at: 60, told: ResultFault, n: 5}, {at: 60, ask: "no", wait: SharedOpen}},
		"neutral says nothing":    {{told: ResultNeutral, n: 50}, {told: ResultFault, n: 4}, {ask: "yes"}, {told: ResultFault, n: 1}, {ask: "no", wait: SharedOpen}},
		"one probe":               append(opened, happening{at: 29.9, ask: "no", wait: 100 * time.Millisecond}, happening{at: 30, ask: "probe"}, happening{at: 31, ask: "no", wait: 29 * time.Second}),
		"a good probe":            append(opened, happening{at: 30, ask: "probe"}, happening{at: 31, told: ResultGood, n: 1}, happening{at: 31, told: ResultFault, n: 4}, happening{at: 31, ask: "yes"}),
		"a failed probe":          append(opened, happening{at: 30, ask: "probe"}, happening{at: 31, told: ResultFault, n: 1}, happening{at: 31, ask: "no", wait: time.Minute}),
		"a neutral probe":         append(opened, happening{at: 30, ask: "probe"}, happening{at: 31, told: ResultNeutral, n: 1}, happening{at: 31, ask: "probe"}),
		"the prober died":         append(opened, happening{at: 30, ask: "probe"}, happening{at: 59.9, ask: "no", wait: 100 * time.Millisecond}, happening{at: 60, ask: "probe"}),
		"late, but the only one":  append(opened, happening{at: 30, ask: "probe"}, happening{at: 90, told: ResultGood, n: 1}, happening{at: 90, ask: "yes"}),
		"the clock was set back":  append(opened, happening{at: -7200, ask: "probe"}, happening{at: -14400, ask: "probe"}),
		"a clock a little behind": append(opened, happening{at: -1, ask: "no", wait: 31 * time.Second}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, tc)
		})
	}
}

// play keeps the state as text, as a store would.
func play(t *testing.T, happenings []happening) {
	t.Helper()
	var body []byte
	for i, h := range happenings {
		now := noon().Add(time.Duration(h.at * float64(time.Second)))
		if h.ask == "" {
			for range h.n {
				c := decodeCircuit(body)
				c, _ = c.withResult(c.Generation, h.told, now)
				body = encode(t, c)
			}
			continue
		}
		c, v := decodeCircuit(body).askPermission("me", now)
		body = encode(t, c)
		want := permission{allowed: h.ask != "no", probe: h.ask == "probe", wait: h.wait}
		require.Equal(t, want, v, "event %d", i)
	}
}

func encode(t *testing.T, c circuit) []byte {
	t.Helper()
	body, err := json.Marshal(c)
	require.NoError(t, err)
	return body
}

func TestEachFailedProbeDoublesTheTime(t *testing.T) {
	t.Parallel()
	c, now := circuit{}, noon()
	for range SharedFaults {
		c, _ = c.withResult(0, ResultFault, now)
	}
	for _, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
		_, v := c.askPermission("me", now)
		require.Equal(t, permission{wait: want}, v)
		now = now.Add(want)
		c, v = c.askPermission("me", now)
		require.True(t, v.probe)
		c, _ = c.withResult(c.Generation, ResultFault, now)
	}
	now = now.Add(SharedOpenMax)
	c, _ = c.askPermission("me", now)
	c, _ = c.withResult(c.Generation, ResultGood, now)
	for range SharedFaults {
		c, _ = c.withResult(c.Generation, ResultFault, now)
	}
	_, v := c.askPermission("me", now)
	assert.Equal(t, permission{wait: SharedOpen}, v, "a good probe forgets how long it was open")
}

func TestResultsOfAnEarlierGenerationSayNothing(t *testing.T) {
	t.Parallel()
	c, now := circuit{}, noon()
	for range SharedFaults {
		c, _ = c.withResult(0, ResultFault, now)
	}
	_, changed := c.withResult(0, ResultFault, now)
	assert.False(t, changed, "begun while it was closed, ended while it was open")
	dead, _ := c.askPermission("dead", now.Add(SharedOpen))
	alive, v := dead.askPermission("alive", now.Add(SharedOpen+SharedProbe))
	require.True(t, v.probe)
	for _, r := range []Result{ResultGood, ResultFault, ResultNeutral} {
		_, changed = alive.withResult(dead.Generation, r, now.Add(2*SharedOpen))
		assert.False(t, changed, "the probe belongs to somebody else by now")
	}
}

func TestDecodeMendsWhatNoRuleCanHaveSet(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body string
		want permission
	}{
		"nothing":             {"", permission{allowed: true}},
		"garbage":             {"\x00]", permission{allowed: true}},
		"another type":        {`{"open":true,"generation":"x"}`, permission{allowed: true}},
		"unknown fields":      {`{"open":true,"open_until_ms":1795262430000,"colour":"red"}`, permission{wait: SharedOpen}},
		"open without end":    {`{"open":true}`, permission{allowed: true, probe: true}},
		"open for ever":       {`{"open":true,"open_until_ms":9223372036854775807}`, permission{allowed: true, probe: true}},
		"open since ever":     {`{"open":true,"open_until_ms":-9223372036854775808}`, permission{allowed: true, probe: true}},
		"probed for ever":     {`{"open":true,"probe":{"until_ms":9223372036854775807}}`, permission{allowed: true, probe: true}},
		"closed, but a probe": {`{"probe":{"until_ms":1795262430000},"open_until_ms":1795262430000}`, permission{allowed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, v := decodeCircuit([]byte(tc.body)).askPermission("me", noon())
			assert.Equal(t, tc.want, v)
		})
	}
	c, _ := decodeCircuit([]byte(`{"window":[{"at":1795262400,"good":-9,"fault":4}]}`)).withResult(0, ResultFault, noon())
	assert.True(t, c.Open, "a negative count is none")
	assert.Equal(t, 5, c.Calls)
	for body, want := range map[string]time.Duration{
		`{"open":true}`:                                   2 * SharedOpen,
		`{"open":true,"open_for_ms":-1}`:                  2 * SharedOpen,
		`{"open":true,"open_for_ms":9223372036854775807}`: SharedOpenMax,
	} {
		c, _ = decodeCircuit([]byte(body)).askPermission("me", noon())
		c, _ = c.withResult(c.Generation, ResultFault, noon())
		_, v := c.askPermission("me", noon())
		assert.Equal(t, permission{wait: want}, v, body)
	}
}

// FuzzCircuit plays events against a model that keeps every result, and against invariants.
func FuzzCircuit(f *testing.F) {
	f.Add([]byte{0x11, 0x11, 0x11, 0x11, 0x11, 0x03, 0xf3, 0x21})
	f.Add([]byte{0, 1, 1, 1, 1, 1, 0xf0, 0xf3, 1, 0xf3, 0xf3, 0xf3, 0})
	f.Fuzz(func(t *testing.T, events []byte) {
		m := model{now: noon()}
		c := circuit{}
		for _, e := range events {
			m.now = m.now.Add(time.Duration(e>>4) * 2300 * time.Millisecond)
			c = decodeCircuit(encode(t, c))
			if e&3 == 3 {
				c = m.asks(t, c)
			} else {
				c = m.tells(t, c, Result(e&3))
			}
		}
	})
}

// model is the breaker with lists and times instead of counts.
type model struct {
	now     time.Time
	results []mark
	open    bool
	until   time.Time
	length  time.Duration
	probe   time.Time // the end of the lease; zero = no probe in progress
}

type mark struct {
	second int64
	fault  bool
}

func (m *model) asks(t *testing.T, c circuit) circuit {
	t.Helper()
	next, v := c.askPermission("me", m.now)
	switch {
	case !m.open:
		require.Equal(t, permission{allowed: true}, v)
		require.Equal(t, c, next)
	case m.now.Before(m.until):
		require.Equal(t, permission{wait: m.until.Sub(m.now)}, v)
	case m.now.Before(m.probe):
		require.Equal(t, permission{wait: m.probe.Sub(m.now)}, v)
	default:
		require.Equal(t, permission{allowed: true, probe: true}, v)
		m.probe = m.now.Add(SharedProbe)
	}
	return next
}

func (m *model) tells(t *testing.T, c circuit, r Result) circuit {
	t.Helper()
	next, changed := c.withResult(c.Generation, r, m.now)
	require.GreaterOrEqual(t, next.Generation, c.Generation)
	switch {
	case m.open && !m.probe.IsZero():
		m.probe = time.Time{}
		switch r {
		case ResultGood:
			*m = model{now: m.now}
		case ResultFault:
			m.length = min(2*m.length, SharedOpenMax)
			m.until = m.now.Add(m.length)
		case ResultNeutral:
		}
	case m.open || r == ResultNeutral:
		require.False(t, changed)
	default:
		m.counts(r)
	}
	require.Equal(t, m.open, next.Open)
	return next
}

func (m *model) counts(r Result) {
	m.results = append(m.results, mark{m.now.Unix(), r == ResultFault})
	var faults, calls int
	for _, one := range m.results {
		if m.now.Unix()-one.second < 60 {
			calls++
			if one.fault {
				faults++
			}
		}
	}
	if r == ResultFault && faults >= 5 && 2*faults >= calls {
		*m = model{now: m.now, open: true, length: SharedOpen, until: m.now.Add(SharedOpen)}
	}
}

// FuzzDecode: whatever the store holds, a call is allowed again within the longest open
// time.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"open":true,"open_until_ms":1795262430000,"probe":{"who":"x","until_ms":1795262430000}}`))
	f.Add([]byte(`{"generation":-1,"window":[{"at":-9223372036854775808,"fault":9223372036854775807}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		now := noon()
		for range 3 {
			c, v := decodeCircuit(body).askPermission("me", now)
			if v.allowed {
				next, _ := c.withResult(c.Generation, ResultFault, now)
				require.LessOrEqual(t, next.OpenFor, SharedOpenMax.Milliseconds())
				require.LessOrEqual(t, len(next.Window), 121)
				return
			}
			require.Positive(t, v.wait)
			require.LessOrEqual(t, v.wait, 2*SharedOpenMax)
			now = now.Add(v.wait)
		}
		t.Fatal("nobody may call")
	})
}
