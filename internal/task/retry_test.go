package task

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

// lived is a task whose attempts ended in these classes, the last undecided.
func lived(spec Spec, classes ...sandbox.Class) Task {
	if spec.Attempts == 0 {
		spec.Attempts = 3
	}
	t := Task{ID: "t-1", State: Running, Spec: spec, CreatedAt: noon(), ReadAt: noon()}
	for i, class := range classes {
		a := Attempt{N: i + 1, Provider: spec.Provider, Exit: &Exit{Class: class}, MemoryMB: spec.MemoryBytes / sandbox.MiB, EndedAt: noon(), GoneAt: noon()}
		if i > 0 && t.Attempts[i-1].Retry.MemoryMB > 0 {
			a.MemoryMB = t.Attempts[i-1].Retry.MemoryMB
		}
		t.Attempts = append(t.Attempts, a)
		if i < len(classes)-1 {
			next := t.Next(0.5)
			t.Attempts[i].Retry = &next
		}
	}
	return t
}

// TestNext checks the decision after every class.
func TestNext(t *testing.T) {
	t.Parallel()
	const (
		ok, agent, usage, env = sandbox.ClassOK, sandbox.ClassAgentError, sandbox.ClassUsage, sandbox.ClassEnvironment
		oom, killed, ours     = sandbox.ClassOOM, sandbox.ClassKilledUnknown, sandbox.ClassKilledByUs
		crash, unknown        = sandbox.ClassCrash, sandbox.ClassUnknown
		timeout, stopped      = sandbox.ClassTimeout, sandbox.ClassStopped
		infra, launcher       = sandbox.ClassInfra, sandbox.ClassLauncher
		transport, gone       = sandbox.ClassTransport, sandbox.ClassGone
	)
	with := Spec{MemoryBytes: 512 * sandbox.MiB}
	for name, c := range map[string]struct {
		task        Task
		again, free bool
		memory      int64
	}{
		"ok":                             {lived(with, ok), false, false, 0},
		"agent error":                    {lived(with, agent), false, false, 0},
		"usage":                          {lived(with, usage), false, false, 0},
		"environment":                    {lived(with, env), false, false, 0},
		"killed by us":                   {lived(with, ours), false, false, 0},
		"timeout":                        {lived(with, timeout), false, false, 0},
		"stopped":                        {lived(with, stopped), false, false, 0},
		"killed":                         {lived(with, killed), true, false, 0},
		"killed twice":                   {lived(with, killed, killed), true, false, 0},
		"killed to the end":              {lived(with, killed, killed, killed), false, false, 0},
		"crash":                          {lived(with, crash), true, false, 0},
		"crash twice":                    {lived(with, crash, crash), false, false, 0},
		"crash, then killed":             {lived(with, crash, killed), true, false, 0},
		"unknown":                        {lived(with, unknown), true, false, 0},
		"unknown twice":                  {lived(with, unknown, unknown), false, false, 0},
		"out of memory":                  {lived(with, oom), true, false, 1024},
		"out of memory twice":            {lived(with, oom, oom), false, false, 0},
		"out of memory, then killed":     {lived(with, oom, killed), true, false, 0},
		"out of unlimited memory":        {lived(Spec{}, oom), false, false, 0},
		"infra":                          {lived(with, infra), true, true, 0},
		"launcher":                       {lived(with, launcher), true, true, 0},
		"transport":                      {lived(with, transport), true, true, 0},
		"gone":                           {lived(with, gone), true, true, 0},
		"infra three times":              {lived(with, infra, launcher, gone), false, true, 0},
		"infra burns nothing":            {lived(with, infra, infra, killed, killed), true, false, 0},
		"infra burns nothing, to a cap":  {lived(with, killed, infra, infra, infra), false, true, 0},
		"asked for: timeout":             {lived(Spec{RetryOn: []sandbox.Class{timeout}}, timeout), true, false, 0},
		"asked for: timeout, to the end": {lived(Spec{RetryOn: []sandbox.Class{timeout}, Attempts: 2}, timeout, timeout), false, false, 0},
		"asked for: agent errors":        {lived(Spec{RetryOn: []sandbox.Class{agent}}, agent, agent), true, false, 0},
		"not asked for: killed":          {lived(Spec{RetryOn: []sandbox.Class{agent}}, killed), false, false, 0},
		"not asked for: infra":           {lived(Spec{RetryOn: []sandbox.Class{agent}}, infra), false, false, 0},
		"asked for: nothing":             {lived(Spec{RetryOn: []sandbox.Class{}}, killed), false, false, 0},
		"asked for: oom twice":           {lived(Spec{RetryOn: []sandbox.Class{oom}, MemoryBytes: sandbox.MiB}, oom, oom), false, false, 0},
		"one attempt":                    {lived(Spec{Attempts: 1}, killed), false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := c.task.Next(0.5)
			assert.Equal(t, c.again, next.Again, next.Why)
			assert.Equal(t, c.free, next.Free, next.Why)
			assert.Equal(t, c.memory, next.MemoryMB)
			assert.NotEmpty(t, next.Why)
		})
	}
}

// TestRetryOnListsWhatIsTriedAgain compares the documented list with the rules.
func TestRetryOnListsWhatIsTriedAgain(t *testing.T) {
	t.Parallel()
	listed := map[sandbox.Class]bool{}
	for _, c := range RetryOn() {
		listed[c] = true
	}
	for _, class := range []sandbox.Class{
		sandbox.ClassOK, sandbox.ClassAgentError, sandbox.ClassUsage, sandbox.ClassEnvironment, sandbox.ClassLauncher, sandbox.ClassOOM,
		sandbox.ClassKilledByUs, sandbox.ClassKilledUnknown, sandbox.ClassCrash, sandbox.ClassTimeout, sandbox.ClassStopped,
		sandbox.ClassTransport, sandbox.ClassGone, sandbox.ClassInfra, sandbox.ClassUnknown,
	} {
		task := lived(Spec{MemoryBytes: sandbox.MiB}, class)
		assert.Equal(t, listed[class], task.Next(0.5).Again, class)
	}
}

func TestNothingIsTriedAgainWhenNothingIsKnown(t *testing.T) {
	t.Parallel()
	begun := running()
	assert.False(t, begun.Next(0).Again)
	fresh := pending()
	assert.False(t, fresh.Next(0).Again)
}

func TestADeadlineLeavesNoTimeForAnother(t *testing.T) {
	t.Parallel()
	task := lived(Spec{Delay: 6 * time.Second}, sandbox.ClassKilledUnknown)
	task.DeadlineAt = noon().Add(7 * time.Second)
	assert.True(t, task.Next(0.5).Again, "6 s of 7")
	assert.False(t, task.Next(0.9).Again, "8.4 s of 7")
}

func TestDelay(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][2]time.Duration{
		1: {3 * time.Second, 9 * time.Second}, 2: {6 * time.Second, 18 * time.Second}, 3: {12 * time.Second, 36 * time.Second},
		4: {24 * time.Second, time.Minute}, 60: {time.Minute, time.Minute}, 5000: {time.Minute, time.Minute},
	} {
		assert.Equal(t, want[0], Delay(6*time.Second, n, 0), n)
		assert.InDelta(t, want[1].Seconds(), Delay(6*time.Second, n, 1).Seconds(), 0.001, n)
		assert.LessOrEqual(t, Delay(6*time.Second, n, 0.5), MaxDelay, n)
	}
	assert.Zero(t, Delay(0, 3, 0.5))
}

// TestPlaces checks that only faults of the infrastructure move a task to another provider,
// where it stays.
func TestPlaces(t *testing.T) {
	t.Parallel()
	spec := Spec{Provider: "a", Fallback: []string{"b", "c"}, MemoryBytes: sandbox.MiB, Attempts: 9}
	for want, classes := range map[string][]sandbox.Class{
		"a":     {sandbox.ClassKilledUnknown},
		"b":     {sandbox.ClassInfra},
		"b too": {sandbox.ClassInfra, sandbox.ClassKilledUnknown},
		"c":     {sandbox.ClassInfra, sandbox.ClassGone},
		"a too": {sandbox.ClassOOM},
	} {
		task := lived(spec, classes...)
		next := task.Next(0.5)
		task.Last().Retry = &next
		require.True(t, next.Again, next.Why)
		assert.Equal(t, want[:1], task.Place(), classes)
	}
	assert.Equal(t, "a", (&Task{Spec: spec}).Place())
}

// TestMemoryOfTheNext checks that the memory of an attempt is never reduced.
func TestMemoryOfTheNext(t *testing.T) {
	t.Parallel()
	spec := Spec{MemoryBytes: 512 * sandbox.MiB, Attempts: 9}
	assert.EqualValues(t, 512, (&Task{Spec: spec}).nextMemoryMB())
	for want, classes := range map[int64][]sandbox.Class{
		512:  {sandbox.ClassKilledUnknown},
		1024: {sandbox.ClassOOM},
	} {
		task := lived(spec, classes...)
		next := task.Next(0.5)
		task.Last().Retry = &next
		assert.Equal(t, want, task.nextMemoryMB())
		task = lived(spec, append(classes, sandbox.ClassKilledUnknown)...)
		next = task.Next(0.5)
		task.Last().Retry = &next
		assert.Equal(t, want, task.nextMemoryMB(), "and stays")
	}
	assert.Zero(t, (&Task{Attempts: []Attempt{{MemoryMB: 64}}}).nextMemoryMB(), "whose memory was not ours to say")
}

// TestExitCodes checks the exit codes of `sbx run`.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	code := func(n int) *int { return &n }
	ran := func(class sandbox.Class, code *int) Task {
		return Task{State: Failed, Attempts: []Attempt{{Exit: &Exit{Class: class, Code: code}}}}
	}
	for name, c := range map[string]struct {
		task Task
		want int
	}{
		"completed": {Task{State: Completed}, 0}, "stopped": {Task{State: Stopped}, 130}, "timed out": {Task{State: TimedOut}, 124},
		"still running": {Task{State: Running}, 125}, "nothing ran": {Task{State: Failed}, 125},
		"its own": {ran(sandbox.ClassAgentError, code(3)), 3}, "not found": {ran(sandbox.ClassEnvironment, code(127)), 127},
		"killed": {ran(sandbox.ClassOOM, nil), 137}, "killed, with a code": {ran(sandbox.ClassKilledUnknown, code(137)), 137},
		"infra": {ran(sandbox.ClassInfra, code(1)), 125}, "gone": {ran(sandbox.ClassGone, nil), 125},
		"odd code": {ran(sandbox.ClassAgentError, code(-9)), 125}, "code 0 that failed": {ran(sandbox.ClassUnknown, code(0)), 125},
		"not published": {Task{State: Failed, Publish: Publish{State: PublishRefused}, Attempts: []Attempt{{Exit: &Exit{Class: sandbox.ClassOK, Code: code(0)}}}}, 125},
	} {
		assert.Equal(t, c.want, c.task.ExitCode(), name)
	}
}
