package triage

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

func TestParseExit(t *testing.T) {
	t.Parallel()
	none := -1000
	for raw, want := range map[string]struct {
		code   int
		signal string
		death  sandbox.Verdict
	}{
		"0":                  {0, "", sandbox.False},
		" 3\n":               {3, "", sandbox.False},
		"exit status 3":      {3, "", sandbox.False},
		"exit code: -9":      {137, "SIGKILL", sandbox.Unknown},
		"exited with code 1": {1, "", sandbox.False},
		"137":                {137, "SIGKILL", sandbox.Unknown},
		"-9":                 {137, "SIGKILL", sandbox.Unknown},
		"247":                {247, "SIGKILL", sandbox.Unknown},
		"signal: killed":     {137, "SIGKILL", sandbox.True},
		"signal: segmentation fault (core dumped)": {139, "SIGSEGV", sandbox.True},
		"signal: 15":           {143, "SIGTERM", sandbox.True},
		"SIGKILL":              {137, "SIGKILL", sandbox.True},
		"signal: sigterm":      {143, "SIGTERM", sandbox.True},
		"-15":                  {143, "SIGTERM", sandbox.Unknown},
		"143":                  {143, "SIGTERM", sandbox.Unknown},
		"129":                  {129, "SIGHUP", sandbox.Unknown},
		"128":                  {128, "", sandbox.False},
		"-1":                   {-1, "", sandbox.False},
		"255":                  {255, "", sandbox.False},
		"246":                  {246, "", sandbox.False},
		"408":                  {408, "", sandbox.False},
		"":                     {none, "", sandbox.Unknown},
		"signal: 99":           {none, "", sandbox.Unknown},
		"signal: 64":           {192, "SIGRTMIN+30", sandbox.True},
		"signal: signal 34":    {162, "SIGRTMIN", sandbox.True},
		"signal: 32":           {160, "SIGRTMIN-2", sandbox.True},
		"signal: i/o possible": {157, "SIGIO", sandbox.True},
		"signal: 26":           {154, "SIGVTALRM", sandbox.True},
		"162":                  {162, "", sandbox.False},
		"154":                  {154, "", sandbox.False},
		"signal: 65":           {none, "", sandbox.Unknown},
		"signal: 0":            {none, "", sandbox.Unknown},
		"signal: dancing":      {none, "", sandbox.Unknown},
		"nine":                 {none, "", sandbox.Unknown},
		"600":                  {none, "", sandbox.Unknown},
		"-256":                 {none, "", sandbox.Unknown},
		"99999999999999999999": {none, "", sandbox.Unknown},
		"1.5":                  {none, "", sandbox.Unknown},
	} {
		got := ParseExit(raw)
		if want.code == none {
			assert.Nil(t, got.Code, "%q", raw)
		} else if assert.NotNil(t, got.Code, "%q", raw) {
			assert.Equal(t, want.code, *got.Code, "%q", raw)
		}
		assert.Equal(t, want.signal, got.Signal, "%q", raw)
		assert.Equal(t, want.death, got.Death, "%q", raw)
	}
}

// TestClassOfEachCode is the table of exit codes without any other knowledge.
func TestClassOfEachCode(t *testing.T) {
	t.Parallel()
	m := NewMatcher()
	for raw, want := range map[string]struct {
		class      sandbox.Class
		cause      sandbox.Cause
		confidence sandbox.Confidence
	}{
		"0":              {sandbox.ClassOK, sandbox.CauseNone, sandbox.Certain},
		"1":              {sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}, // S0-4: no SIGKILL
		"2":              {sandbox.ClassUsage, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"3":              {sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"13":             {sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"123":            {sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"124":            {sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"125":            {sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"126":            {sandbox.ClassEnvironment, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"127":            {sandbox.ClassEnvironment, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"128":            {sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"129":            {sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"130":            {sandbox.ClassStopped, sandbox.CauseStopped, sandbox.Probable},
		"131":            {sandbox.ClassCrash, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"133":            {sandbox.ClassCrash, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"134":            {sandbox.ClassCrash, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"139":            {sandbox.ClassCrash, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"141":            {sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"143":            {sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"152":            {sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable},
		"137":            {sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"-9":             {sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"247":            {sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"signal: killed": {sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"255":            {sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"-1":             {sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"256":            {sandbox.ClassUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}, // no process can end with it
		"162":            {sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"signal: 13":     {sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"signal: 34":     {sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"408":            {sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable},
		"404":            {sandbox.ClassGone, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"410":            {sandbox.ClassGone, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"503":            {sandbox.ClassInfra, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"200":            {sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"":               {sandbox.ClassUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"what":           {sandbox.ClassUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
	} {
		got := ClassifyExit(m, ExitFacts{Raw: raw, Source: "wait"})
		assert.Equal(t, want.class, got.Class, "%q", raw)
		assert.Equal(t, want.cause, got.Cause, "%q", raw)
		assert.Equal(t, want.confidence, got.Confidence, "%q", raw)
		assert.Equal(t, raw, got.Raw)
		if raw != "" {
			assert.Equal(t, sandbox.Evidence{What: "exit", Value: raw, Source: "wait"}, got.Evidence[0])
		}
	}
}

func TestClassifyWithEvidence(t *testing.T) {
	t.Parallel()
	m := NewMatcher()
	const limit = 100 * sandbox.MiB
	share := func(percent int64) *int64 { return new(int64(limit) * percent / 100) }
	at := noon()
	type want struct {
		class      sandbox.Class
		cause      sandbox.Cause
		confidence sandbox.Confidence
	}
	bare := want{sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}
	for name, tc := range map[string]struct {
		facts ExitFacts
		want  want
	}{
		// rungs of the OOM ladder, both sides of every edge
		"counter, log names it, own limit": {ExitFacts{Raw: "137", Died: sandbox.True, OOMKills: new(int64(1)), KernelLog: "Killed process 1", OwnLimit: sandbox.True}, want{sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Certain}},
		"counter, log, a group's limit":    {ExitFacts{Raw: "137", OOMKills: new(int64(1)), KernelLog: "Killed process 1", OwnLimit: sandbox.False, PeakBytes: share(100), LimitBytes: share(100)}, want{sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable}},
		"counter, log, nobody's limit":     {ExitFacts{Raw: "-9", OOMKills: new(int64(2)), KernelLog: "Killed process 1", PeakBytes: share(101), LimitBytes: share(100)}, want{sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable}},
		"counter, no log, peak at limit":   {ExitFacts{Raw: "137", Died: sandbox.True, OOMKills: new(int64(1)), PeakBytes: share(100), LimitBytes: share(100)}, want{sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable}},
		"counter and peak below":           {ExitFacts{Raw: "137", Died: sandbox.True, OOMKills: new(int64(1)), PeakBytes: share(96), LimitBytes: share(100)}, want{sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable}},
		"counter without limit":            {ExitFacts{Raw: "-9", OOMKills: new(int64(2)), PeakBytes: share(100)}, want{sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable}},
		"counter of another, earlier":      {ExitFacts{Raw: "137", Died: sandbox.True, At: at, OOMKills: new(int64(1)), NotLogged: true, LastKillAt: at.Add(-3 * time.Second), OwnLimit: sandbox.True, PeakBytes: share(100), LimitBytes: share(100)}, bare},
		"counter of another, just before":  {ExitFacts{Raw: "137", Died: sandbox.True, At: at, OOMKills: new(int64(1)), NotLogged: true, LastKillAt: at.Add(-2 * time.Second), OwnLimit: sandbox.True}, want{sandbox.ClassKilledUnknown, sandbox.CauseOOMChild, sandbox.Certain}},
		"counter of another, at no time":   {ExitFacts{Raw: "137", Died: sandbox.True, At: at, OOMKills: new(int64(1)), NotLogged: true}, want{sandbox.ClassKilledUnknown, sandbox.CauseOOMChild, sandbox.Probable}},
		"counter, no log, grew before":     {ExitFacts{Raw: "137", Died: sandbox.True, At: at, OOMKills: new(int64(1)), CounterSource: "kernel: memory.events", LastKillAt: at.Add(-3 * time.Second)}, bare},
		"child, main exits 3":              {ExitFacts{Raw: "3", At: at, OOMKills: new(int64(1)), LastKillAt: at}, want{sandbox.ClassAgentError, sandbox.CauseOOMChild, sandbox.Certain}},
		"child long before, main exits 3":  {ExitFacts{Raw: "3", At: at, OOMKills: new(int64(1)), LastKillAt: at.Add(-time.Hour), Lines: []string{"MemoryError"}}, want{sandbox.ClassAgentError, sandbox.CauseRuntimeHeap, sandbox.Probable}},
		"child, main exits 3, at no time":  {ExitFacts{Raw: "3", OOMKills: new(int64(1)), PeakBytes: share(100), LimitBytes: share(100)}, want{sandbox.ClassAgentError, sandbox.CauseOOMChild, sandbox.Probable}},
		"child, main exits 0":              {ExitFacts{Raw: "0", At: at, OOMKills: new(int64(1)), LastKillAt: at}, want{sandbox.ClassOK, sandbox.CauseOOMChild, sandbox.Certain}},
		"child long before, main exits 0":  {ExitFacts{Raw: "0", At: at, OOMKills: new(int64(1)), LastKillAt: at.Add(-time.Hour)}, want{sandbox.ClassOK, sandbox.CauseNone, sandbox.Certain}},
		"child, shell passes 137 on":       {ExitFacts{Raw: "137", Died: sandbox.False, At: at, OOMKills: new(int64(1)), LastKillAt: at}, want{sandbox.ClassKilledUnknown, sandbox.CauseOOMChild, sandbox.Certain}},
		"counter and TERM":                 {ExitFacts{Raw: "143", OOMKills: new(int64(1))}, want{sandbox.ClassKilledUnknown, sandbox.CauseOOMChild, sandbox.Probable}},
		"counter and unseen end":           {ExitFacts{OOMKills: new(int64(1))}, want{sandbox.ClassUnknown, sandbox.CauseOOM, sandbox.Probable}},
		"counter still, peak at limit":     {ExitFacts{Raw: "137", Died: sandbox.True, OOMKills: new(int64(0)), PeakBytes: share(100), LimitBytes: share(100)}, bare},
		"no counter, peak at limit":        {ExitFacts{Raw: "137", Died: sandbox.True, PeakBytes: share(100), LimitBytes: share(100)}, bare},
		"counter went down":                {ExitFacts{Raw: "137", OOMKills: new(int64(-1))}, bare},
		"last sample near, just before":    {ExitFacts{Raw: "137", At: at, LastBytes: share(91), LastAt: at.Add(-2 * time.Second), LimitBytes: share(100)}, want{sandbox.ClassKilledUnknown, sandbox.CauseOOM, sandbox.Hint}},
		"last sample near, too long ago":   {ExitFacts{Raw: "137", At: at, LastBytes: share(91), LastAt: at.Add(-2*time.Second - 1), LimitBytes: share(100)}, bare},
		"last sample after the end":        {ExitFacts{Raw: "137", At: at, LastBytes: share(91), LastAt: at.Add(1), LimitBytes: share(100)}, bare},
		"last sample below":                {ExitFacts{Raw: "137", At: at, LastBytes: share(89), LastAt: at, LimitBytes: share(100)}, bare},
		"last sample near, counter still":  {ExitFacts{Raw: "137", At: at, LastBytes: share(99), LastAt: at, LimitBytes: share(100), OOMKills: new(int64(0))}, bare},
		"last sample near, TERM":           {ExitFacts{Raw: "143", At: at, LastBytes: share(99), LastAt: at, LimitBytes: share(100)}, bare},
		"last sample at no time":           {ExitFacts{Raw: "137", LastBytes: share(99), LimitBytes: share(100)}, bare},

		// what sbx recorded
		"stop by KILL":           {ExitFacts{Raw: "137", StopBy: "ann"}, want{sandbox.ClassKilledByUs, sandbox.CauseStopped, sandbox.Certain}},
		"stop by TERM":           {ExitFacts{Raw: "signal: terminated", StopBy: "ann"}, want{sandbox.ClassKilledByUs, sandbox.CauseStopped, sandbox.Certain}},
		"stop, it left by code":  {ExitFacts{Raw: "1", StopBy: "ann"}, want{sandbox.ClassStopped, sandbox.CauseStopped, sandbox.Certain}},
		"stop beats counter":     {ExitFacts{Raw: "137", StopBy: "ann", OOMKills: new(int64(1))}, want{sandbox.ClassKilledByUs, sandbox.CauseStopped, sandbox.Certain}},
		"time limit":             {ExitFacts{Raw: "137", TimedOut: true}, want{sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Certain}},
		"watchdog":               {ExitFacts{Raw: "137", Watchdog: true}, want{sandbox.ClassOOM, sandbox.CauseMemoryWatchdog, sandbox.Certain}},
		"not started":            {ExitFacts{Raw: "125", NotStarted: true}, want{sandbox.ClassLauncher, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}},
		"not found, not started": {ExitFacts{Raw: "127", NotStarted: true}, want{sandbox.ClassEnvironment, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}},
		"supervisor lost":        {ExitFacts{SupervisorLost: true}, want{sandbox.ClassInfra, sandbox.CauseSupervisorLost, sandbox.Certain}},
		"gone":                   {ExitFacts{Gone: true}, want{sandbox.ClassGone, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}},

		// what the last lines add
		"node heap":               {ExitFacts{Raw: "134", Lines: []string{"JavaScript heap out of memory"}}, want{sandbox.ClassCrash, sandbox.CauseRuntimeHeap, sandbox.Probable}},
		"node trap":               {ExitFacts{Raw: "133", Lines: []string{"Fatal process OOM"}}, want{sandbox.ClassCrash, sandbox.CauseRuntimeHeap, sandbox.Probable}},
		"python":                  {ExitFacts{Raw: "1", Lines: []string{"Traceback", "MemoryError"}}, want{sandbox.ClassAgentError, sandbox.CauseRuntimeHeap, sandbox.Probable}},
		"go":                      {ExitFacts{Raw: "2", Lines: []string{"fatal error: runtime: out of memory"}}, want{sandbox.ClassCrash, sandbox.CauseRuntimeHeap, sandbox.Probable}},
		"go panic":                {ExitFacts{Raw: "2", Lines: []string{"panic: oh"}}, want{sandbox.ClassCrash, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}},
		"usage":                   {ExitFacts{Raw: "2", Lines: []string{"usage: x [-h]"}}, want{sandbox.ClassUsage, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}},
		"java":                    {ExitFacts{Raw: "1", Lines: []string{"java.lang.OutOfMemoryError: Java heap space", "Operation timed out"}}, want{sandbox.ClassAgentError, sandbox.CauseRuntimeHeap, sandbox.Probable}},
		"heap message, exit 0":    {ExitFacts{Raw: "0", Lines: []string{"MemoryError"}}, want{sandbox.ClassOK, sandbox.CauseNone, sandbox.Certain}},
		"heap message and KILL":   {ExitFacts{Raw: "137", Lines: []string{"MemoryError", "Out of memory: Killed process 3"}}, bare},
		"kernel text is no proof": {ExitFacts{Raw: "1", Lines: []string{"Out of memory: Killed process 3"}}, want{sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}},
		"agent's time limit":      {ExitFacts{Raw: "1", Lines: []string{"Agent execution timeout"}}, want{sandbox.ClassAgentError, sandbox.CauseTimeout, sandbox.Hint}},
		"crash without a word":    {ExitFacts{Raw: "139", Lines: []string{"hello"}}, want{sandbox.ClassCrash, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ClassifyExit(m, tc.facts)
			assert.Equal(t, tc.want, want{got.Class, got.Cause, got.Confidence}, "%+v", got.Evidence)
			if got.Cause != sandbox.CauseNone && got.Cause != sandbox.CauseUnknown {
				assert.NotEmpty(t, got.Evidence, "a cause needs evidence")
			}
		})
	}
}

func TestEvidenceNamesTheCounter(t *testing.T) {
	t.Parallel()
	got := ClassifyExit(NewMatcher(), ExitFacts{
		Raw: "signal: killed", At: noon(), Source: "wait status", CounterSource: "memory.events",
		OOMKills: new(int64(1)), PeakBytes: new(int64(10)), LimitBytes: new(int64(100)),
	})
	assert.Equal(t, []sandbox.Evidence{
		{What: "exit", Value: "signal: killed", Source: "wait status", At: noon()},
		{What: "oom_kill", Value: "1", Source: "memory.events", At: noon()},
		{What: "memory peak bytes", Value: "10", Source: "memory.events", At: noon()},
		{What: "memory limit bytes", Value: "100", Source: "memory.events", At: noon()},
		{What: "scope", Value: "unknown: the counter moved while it ran, and nothing shows which process was killed and when", Source: "memory.events", At: noon()},
	}, got.Evidence)
	assert.Equal(t, 137, *got.Code)
	assert.Equal(t, "SIGKILL", got.Signal)
}

func TestTheKernelLogIsAWitnessWhereNoCounterIs(t *testing.T) {
	t.Parallel()
	line := "Out of memory: Killed process 4711 (python3) total-vm:265120kB"
	facts := ExitFacts{Raw: "signal: killed", At: noon(), Source: "wait status", KernelLog: line}
	got := ClassifyExit(NewMatcher(), facts)
	assert.Equal(t, []any{sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable}, []any{got.Class, got.Cause, got.Confidence})
	assert.Contains(t, got.Evidence, sandbox.Evidence{What: "oom kill", Value: line, Source: "kernel log", At: noon()})

	watched := facts
	watched.OOMKills = new(int64(0))
	assert.Equal(t, sandbox.ClassKilledUnknown, ClassifyExit(NewMatcher(), watched).Class, "its own counter did not move")
	stopped := facts
	stopped.StopBy = "somebody"
	assert.Equal(t, sandbox.CauseStopped, ClassifyExit(NewMatcher(), stopped).Cause)
	exited := facts
	exited.Raw = "exit status 3"
	assert.Equal(t, sandbox.ClassAgentError, ClassifyExit(NewMatcher(), exited).Class)
}

// FuzzClassifyExit holds that OOM is never claimed without the counter or the
// watchdog, whatever an exit is called and whatever the program printed.
func FuzzClassifyExit(f *testing.F) {
	m := NewMatcher()
	for _, raw := range []string{"137", "-9", "signal: killed", "exit code: -9", "247", "", "oom", "exit status 99999999999999"} {
		f.Add(raw, "Out of memory: Killed process 1\nJavaScript heap out of memory")
	}
	f.Fuzz(func(t *testing.T, raw, log string) {
		got := ClassifyExit(m, ExitFacts{Raw: raw, Lines: strings.Split(log, "\n")})
		if got.Class == sandbox.ClassOOM || got.Cause == sandbox.CauseOOM || got.Cause == sandbox.CauseOOMChild || got.Cause == sandbox.CauseMemoryWatchdog {
			t.Fatalf("OOM from a text: %+v", got)
		}
		if got.Class == "" || got.Raw != raw || got.Confidence == sandbox.Certain && got.Class != sandbox.ClassOK {
			t.Fatalf("%+v", got)
		}
		if s := ParseExit(raw); s.Signal != "" && s.Code == nil {
			t.Fatalf("a signal without a code: %+v", s)
		}
	})
}

// TestALimitOfProcesses: the kernel's counter names the limit, and the last lines show that the program met it.
func TestALimitOfProcesses(t *testing.T) {
	t.Parallel()
	thread, fork := "RuntimeError: can't start new thread", "bash: fork: retry: Resource temporarily unavailable"
	for name, tc := range map[string]struct {
		raw     string
		refused *int64
		lines   []string
		cause   sandbox.Cause
		sure    sandbox.Confidence
	}{
		"refused, and it says so":    {"1", new(int64(3)), []string{thread}, sandbox.CauseProcessLimit, sandbox.Certain},
		"a shell":                    {"2", new(int64(3)), []string{fork}, sandbox.CauseProcessLimit, sandbox.Certain},
		"refused at some time":       {"1", new(int64(3)), []string{"assertion failed"}, sandbox.CauseProcessLimit, sandbox.Probable},
		"refused, and it went well":  {"0", new(int64(3)), []string{fork}, sandbox.CauseNone, sandbox.Certain},
		"never refused":              {"1", new(int64(0)), []string{"assertion failed"}, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"no counter, and it says so": {"1", nil, []string{thread}, sandbox.CauseProcessLimit, sandbox.Hint},
		"killed":                     {"-9", new(int64(3)), nil, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"open files":                 {"1", nil, []string{"OSError: [Errno 24] Too many open files"}, sandbox.CauseFileLimit, sandbox.Hint},
		"a full disk":                {"1", nil, []string{"write: No space left on device"}, sandbox.CauseDiskFull, sandbox.Hint},
	} {
		e := ClassifyExit(NewMatcher(), ExitFacts{Raw: tc.raw, TasksRefused: tc.refused, TaskLimit: new(int64(30)), Lines: tc.lines})
		assert.Equal(t, tc.cause, e.Cause, name)
		assert.Equal(t, tc.sure, e.Confidence, name)
		assert.NotEqual(t, sandbox.ClassOOM, e.Class, name)
	}
	stopped := ClassifyExit(NewMatcher(), ExitFacts{Raw: "1", StopBy: "alice", TasksRefused: new(int64(3))})
	assert.Equal(t, sandbox.CauseStopped, stopped.Cause, "what sbx recorded precedes")
}

// TestALimitOfProcessesNow: of a running sandbox the counter counts while its limit is nearly used.
func TestALimitOfProcessesNow(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tasks, refused int64
		found          bool
	}{"full": {30, 3, true}, "full before": {4, 3, false}, "full, nothing refused": {30, 0, false}} {
		s := old(0)
		s.Limits.PIDs = new(int64(30))
		tr := TrendOf([]sandbox.Usage{{At: noon(), Tasks: &tc.tasks, TasksRefused: &tc.refused, Source: "cgroup2"}}, DefaultThresholds())
		v := Judge(s, Signals{Looked: true, Trend: &tr}, DefaultThresholds(), noon())
		at := slices.IndexFunc(v.Findings, func(f Finding) bool { return f.Cause == sandbox.CauseProcessLimit })
		assert.Equal(t, tc.found, at >= 0, name)
		if at >= 0 {
			assert.Equal(t, "30 of 30", v.Findings[at].Evidence[0].Value)
		}
	}
}
