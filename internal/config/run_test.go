package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

const gib = 1 << 30

// defaultRun are the promised defaults, written out.
func defaultRun() Run {
	return Run{
		CommandTimeout: 300 * time.Second, AttemptTimeout: 600 * time.Second, Deadline: 35 * time.Minute, Inactivity: 60 * time.Second,
		Attempts: 3, RetryDelay: 6 * time.Second, KeepAliveTTL: time.Hour,
		Switches: Switches{true, true, true, true, true}, Origins: map[string]string{},
	}
}

// launching is the Run of a configuration that can launch.
func (w *world) launching() Run {
	w.t.Helper()
	r, err := w.must().Run()
	require.NoError(w.t, err)
	return r
}

func TestRunHasDefaults(t *testing.T) {
	t.Parallel()
	r := newWorld(t).launching()
	assert.Equal(t, defaultRun(), r)
	for _, s := range runSettings() {
		assert.False(t, r.Given(s.name), s.name)
	}
	warnings, err := r.Contradictions()
	require.NoError(t, err)
	assert.Empty(t, warnings, "the defaults agree with each other")
}

const runFile = `run:
  command_timeout: 1m
  attempt_timeout: 2m
  deadline: 3m
  inactivity: 4s
  attempts: 5
  retry_delay: 7s
  keep_alive_ttl: 8h
  callback_url: https://control.example/hook
  memory: 1G
  cpu: 0.5
  disk: 2G
  snapshot: snap
  image: img:1
  db_backed_stop: false
  cancellation_checks: false
  health_probe: false
  inactivity_timeout: false
  authoritative_timeout: false
`

func TestRunFromAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user(runFile)
	r := w.launching()
	here := Size{MemoryBytes: gib, CPU: 0.5, DiskBytes: 2 * gib}
	remote := here
	remote.Snapshot, remote.Image = "snap", "img:1"
	want := Run{
		CommandTimeout: time.Minute, AttemptTimeout: 2 * time.Minute, Deadline: 3 * time.Minute, Inactivity: 4 * time.Second,
		Attempts: 5, RetryDelay: 7 * time.Second, KeepAliveTTL: 8 * time.Hour,
		CallbackURL: "https://control.example/hook", Here: here, Remote: remote, Origins: map[string]string{},
	}
	for i, s := range []string{
		"command_timeout", "attempt_timeout", "deadline", "inactivity", "attempts", "retry_delay", "keep_alive_ttl", "callback_url",
		"memory", "cpu", "disk", "snapshot", "image",
		"db_backed_stop", "cancellation_checks", "health_probe", "inactivity_timeout", "authoritative_timeout",
	} {
		want.Origins[s] = fmt.Sprintf("%s/.config/sbx/config.yaml:%d", w.home, i+2)
	}
	assert.Equal(t, want, r)
}

// TestRunPrecedence is S2-8: parameters over environment over YAML over
// defaults, for each setting that has all four.
func TestRunPrecedence(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, flag, variable, text, want string }{
		{"command_timeout", "command-timeout", "CLAUDE_CODE_TIMEOUT", "120", "120s"},
		{"command_timeout", "command-timeout", "AGENT_MAX_WAIT_TIME_MS", "120000", "120s"},
		{"command_timeout", "command-timeout", "AGENT_TIMEOUT", "1500", "1500ms"},
		{"attempt_timeout", "attempt-timeout", "SANDBOX_TIMEOUT", "601", "601s"},
		{"inactivity", "inactivity", "AGENT_INACTIVITY_TIMEOUT_MS", "30000", "30s"},
	} {
		t.Run(tc.variable, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			key := "run." + tc.name
			assert.Equal(t, runSettingOf(tc.name).fallback+" <- default", w.origin(w.must(), key))
			w.user("run: {" + tc.name + ": 50s}")
			assert.Equal(t, "50s <- DIR/home/.config/sbx/config.yaml:1", w.origin(w.must(), key))
			w.env = append(w.env, tc.variable+"="+tc.text)
			assert.Equal(t, tc.want+" <- env "+tc.variable, w.origin(w.must(), key))
			assert.Equal(t, "env "+tc.variable, w.launching().Origins[tc.name])
			w.flags[tc.flag] = "30s"
			assert.Equal(t, "30s <- flag --"+tc.flag, w.origin(w.must(), key))
		})
	}
}

func TestRunFlags(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range RunFlagNames() {
		w.flags[name] = "11s"
	}
	w.flags["attempts"] = "11"
	r := w.launching()
	assert.Equal(t, []any{11 * time.Second, 11 * time.Second, 11 * time.Second, 11 * time.Second, 11, 11 * time.Second},
		[]any{r.CommandTimeout, r.AttemptTimeout, r.Deadline, r.Inactivity, r.Attempts, r.RetryDelay})
	assert.Equal(t, "flag --retry-delay", r.Origins["retry_delay"])
	for _, tc := range []struct{ flag, text, want string }{
		{"attempts", "0", "flag --attempts: must be a whole number from 1 to 1000000, not"},
		{"attempts", "101", `flag --attempts: must be at most 100, not "101"`},
		{"deadline", "", "flag --deadline: is empty (is a shell variable unset?)"},
		{"deadline", "8d", `flag --deadline: must be at most 1w, not "8d"`},
		{"inactivity", "1500", `flag --inactivity: "1500" is not a duration: the unit is missing`},
		{"retry-delay", "-1s", `flag --retry-delay: "-1s" is not a duration`},
	} {
		w := newWorld(t)
		w.flags[tc.flag] = tc.text
		got := w.fails()
		assert.True(t, strings.HasPrefix(got, tc.want), got)
		_, err := w.load()
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	}
}

func TestRunSaysNothingAsText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "CALLBACK_URL=https://me:s3cret-a@control.example/x?token=s3cret-b")
	c := w.must()
	r := w.launching()
	assert.Equal(t, "https://me:s3cret-a@control.example/x?token=s3cret-b", r.CallbackURL)
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v %v %+v %#v", r, r, r, c, c, c), "s3cret")
	assert.Equal(t, "https://me:********@control.example/x?******** <- env CALLBACK_URL", w.origin(c, "run.callback_url"))
	assert.ElementsMatch(t, []string{"s3cret-a", "token=s3cret-b"}, c.Secrets())
}

func TestRunIsACopy(t *testing.T) {
	t.Parallel()
	c := newWorld(t).must()
	r, err := c.Run()
	require.NoError(t, err)
	r.Origins["deadline"] = "changed"
	again, err := c.Run()
	require.NoError(t, err)
	assert.False(t, again.Given("deadline"))
}

func TestSizesOfTheEnvironmentAreForServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("run: {memory: 1G, disk: 3G}\nproviders: {box: {type: here}}")
	w.env = append(w.env, "CLOUD_KEY=a", "SANDBOX_MEMORY_GB=8", "SANDBOX_CPU=3", "SANDBOX_SNAPSHOT=snap", "SANDBOX_IMAGE=img")
	c := w.must()
	r := w.launching()
	box, _ := c.Find("box")
	cloud, _ := c.Find("cloud")
	assert.Equal(t, Size{MemoryBytes: gib, DiskBytes: 3 * gib}, r.Size(box))
	assert.Equal(t, Size{MemoryBytes: 8 * gib, CPU: 3, DiskBytes: 3 * gib, Snapshot: "snap", Image: "img"}, r.Size(cloud))
	assert.Equal(t, []string{"cpu"}, r.Size(box).Open())
	assert.Empty(t, r.Size(cloud).Open())
	assert.Equal(t, []string{"memory", "cpu"}, Size{}.Open())
	assert.Equal(t, "8G <- env SANDBOX_MEMORY_GB (not for this machine)", w.origin(c, "run.memory"))
	assert.Equal(t, "3G <- DIR/home/.config/sbx/config.yaml:1", w.origin(c, "run.disk"))
}

func TestFillLeavesWhatFlagsSay(t *testing.T) {
	t.Parallel()
	full := Size{MemoryBytes: 1, CPU: 2, DiskBytes: 3, Snapshot: "snap", Image: "img"}
	imageOnly := full
	imageOnly.Snapshot = ""
	for name, tc := range map[string]struct {
		size       Size
		spec, want sandbox.Spec
	}{
		"all open":    {full, sandbox.Spec{}, sandbox.Spec{MemoryBytes: 1, CPU: 2, DiskBytes: 3, Snapshot: "snap"}},
		"no snapshot": {imageOnly, sandbox.Spec{}, sandbox.Spec{MemoryBytes: 1, CPU: 2, DiskBytes: 3, Image: "img"}},
		"sizes":       {full, sandbox.Spec{MemoryBytes: 7, CPU: 8, DiskBytes: 9}, sandbox.Spec{MemoryBytes: 7, CPU: 8, DiskBytes: 9, Snapshot: "snap"}},
		"template":    {full, sandbox.Spec{Template: "t"}, sandbox.Spec{MemoryBytes: 1, CPU: 2, DiskBytes: 3, Template: "t"}},
		"snapshot":    {imageOnly, sandbox.Spec{Snapshot: "s"}, sandbox.Spec{MemoryBytes: 1, CPU: 2, DiskBytes: 3, Snapshot: "s"}},
		"image":       {full, sandbox.Spec{Image: "i"}, sandbox.Spec{MemoryBytes: 1, CPU: 2, DiskBytes: 3, Image: "i"}},
		"nothing":     {Size{}, sandbox.Spec{Name: "n"}, sandbox.Spec{Name: "n"}},
	} {
		assert.Equal(t, tc.want, tc.size.Fill(tc.spec), name)
	}
}
