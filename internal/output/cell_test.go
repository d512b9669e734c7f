package output

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

func TestMachineText(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   any
		want string
	}{
		"unknown":      {nil, ""},
		"word":         {"x", "x"},
		"number":       {1.5, "1.5"},
		"bool":         {true, "true"},
		"list":         {[]string{"a", "b"}, "a,b"},
		"map":          {map[string]string{"b": "2", "a": "1"}, "a=1,b=2"},
		"empty":        {map[string]string{}, ""},
		"nested list":  {[][]int{{1}, {2}}, "[[1],[2]]"},
		"nested map":   {map[string][]int{"a": {1}}, `{"a":[1]}`},
		"unknown in a": {[]*int{nil, new(1)}, ",1"},
	} {
		assert.Equal(t, tc.want, machineText(shapeValue(tc.in)), name)
	}
}

func TestHumanText(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   any
		key  string
		want string
	}{
		"unknown":         {nil, "x", "-"},
		"empty":           {"", "x", "-"},
		"nil pointer":     {(*int64)(nil), "age_seconds", "-"},
		"past":            {noon().Add(-3 * time.Minute), "at", "3m ago"},
		"pointer to past": {new(noon().Add(-25 * time.Hour)), "at", "1d1h ago"},
		"future":          {noon().Add(2 * time.Hour), "at", "in 2h"},
		"soon":            {noon().Add(time.Second), "at", "in 1s"},
		"now":             {noon().Add(900 * time.Millisecond), "at", "now"},
		"zero time":       {time.Time{}, "at", "-"},
		"nil time":        {(*time.Time)(nil), "at", "-"},
		"age":             {5400.0, "age_seconds", "1h30m"},
		"duration":        {90 * time.Minute, "age", "1h30m"},
		"whole seconds":   {30, "wait_seconds", "30s"},
		"milliseconds":    {0.25, "duration_seconds", "250ms"},
		"tenths":          {1.28, "duration_seconds", "1.2s"},
		"negative":        {-90.0, "skew_seconds", "-1m30s"},
		"other float":     {12.3456, "cpu_percent", "12.35"},
		"word":            {sandbox.StateRunning, "state", "running"},
	} {
		assert.Equal(t, tc.want, humanText(tc.in, tc.key, noon()), name)
	}
}

func TestTones(t *testing.T) {
	t.Parallel()
	for _, s := range sandbox.States() {
		assert.NotEqual(t, Plain, toneOf(s, "state"), "every state has a tone: %s", s)
	}
	for _, o := range sandbox.Outcomes() {
		assert.NotEqual(t, Plain, toneOf(o, "outcome"), "every outcome has a tone: %s", o)
	}
	assert.Equal(t, Bad, toneOf(sandbox.StateFailed, ""))
	assert.Equal(t, Good, toneOf(sandbox.OutcomeVerified, ""))
	assert.Equal(t, Bad, toneOf("critical", "severity"))
	assert.Equal(t, Warn, toneOf("warning", "severity"))
	assert.Equal(t, Good, toneOf("ok", "severity"))
	assert.Equal(t, Plain, toneOf("critical", "note"), "only severity speaks of severity")
	assert.Equal(t, Plain, toneOf(sandbox.True, "stuck"), "a verdict is good or bad by the question")
	assert.Equal(t, Plain, toneOf(sandbox.State("new"), ""))
	assert.Equal(t, Plain, toneOf(sandbox.Outcome("new"), ""))
	assert.Equal(t, Plain, toneOf("new", "severity"))
}

func TestPaintRepeatsTheWord(t *testing.T) {
	t.Parallel()
	for _, tone := range []Tone{Good, Warn, Bad, Muted} {
		painted := screen{colour: true}.paint("word", tone)
		assert.Contains(t, painted, "word")
		assert.Contains(t, painted, "\x1b[")
		assert.Equal(t, 4, cellWidth(painted))
	}
	assert.Equal(t, "word", screen{colour: true}.paint("word", Plain))
}

func TestColourful(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		at   place
		off  bool
		want bool
	}{
		"terminal":        {place{width: 80}, false, true},
		"pipe":            {place{}, false, false},
		"NO_COLOR":        {place{width: 80, env: []string{"NO_COLOR=1"}}, false, false},
		"NO_COLOR empty":  {place{width: 80, env: []string{"NO_COLOR="}}, false, true},
		"dumb":            {place{width: 80, env: []string{"TERM=dumb"}}, false, false},
		"--no-color":      {place{width: 80}, true, false},
		"CLICOLOR=0":      {place{width: 80, env: []string{"CLICOLOR=0"}}, false, false},
		"force":           {place{env: []string{"CLICOLOR_FORCE=1"}}, false, true},
		"force 0":         {place{env: []string{"CLICOLOR_FORCE=0"}}, false, false},
		"force dumb":      {place{env: []string{"CLICOLOR_FORCE=1", "TERM=dumb"}}, false, true},
		"NO_COLOR wins":   {place{width: 80, env: []string{"CLICOLOR_FORCE=1", "NO_COLOR=1"}}, false, false},
		"--no-color wins": {place{width: 80, env: []string{"CLICOLOR_FORCE=1"}}, true, false},
	} {
		p := newStage(tc.at).Process
		assert.Equal(t, tc.want, screenOf(p, p.Stdout, Options{NoColor: tc.off}).colour, name)
	}
}
