package cli_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cli"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// exitWordsOf are the words that a type declares; of no type none.
func exitWordsOf(t *testing.T, name string) []sandbox.ExitWord {
	t.Helper()
	if name == "" {
		return nil
	}
	types := cli.Types()
	i := slices.IndexFunc(types, func(kind providers.Type) bool { return kind.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return types[i].ExitWords
}

// TestExitWordsOfEveryProvider is the one table of what providers write about an
// end, and what that proves. evidence is what the last line of it must say.
func TestExitWordsOfEveryProvider(t *testing.T) {
	t.Parallel()
	const (
		unseen = -1000 // no code
		minute = time.Minute
		slack  = 100 * time.Millisecond // by which duration and limit may differ
	)
	m := triage.NewMatcher()
	for name, tc := range map[string]struct {
		facts      triage.ExitFacts
		code       int
		class      sandbox.Class
		cause      sandbox.Cause
		confidence sandbox.Confidence
		evidence   string
	}{
		"e2b 0":                     {triage.ExitFacts{Provider: "e2b", Raw: "exit status 0"}, 0, sandbox.ClassOK, sandbox.CauseNone, sandbox.Certain, "exit status 0"},
		"e2b 3":                     {triage.ExitFacts{Provider: "e2b", Raw: "exit status 3"}, 3, sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "exit status 3"},
		"e2b killed":                {triage.ExitFacts{Provider: "e2b", Raw: "signal: killed"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "signal: killed"},
		"e2b killed, counted":       {triage.ExitFacts{Provider: "e2b", Raw: "signal: killed", OOMKills: new(int64(1)), PeakBytes: new(int64(100)), LimitBytes: new(int64(100))}, 137, sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable, "nothing shows which process"},
		"e2b killed, by us":         {triage.ExitFacts{Provider: "e2b", Raw: "signal: killed", StopBy: "ann"}, 137, sandbox.ClassKilledByUs, sandbox.CauseStopped, sandbox.Certain, "ann"},
		"e2b terminated":            {triage.ExitFacts{Provider: "e2b", Raw: "signal: terminated"}, 143, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "signal: terminated"},
		"e2b segfault":              {triage.ExitFacts{Provider: "e2b", Raw: "signal: segmentation fault (core dumped)"}, 139, sandbox.ClassCrash, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "segmentation"},
		"e2b a child":               {triage.ExitFacts{Provider: "e2b", Raw: "exit status 137"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "137"},
		"e2b -1 alone":              {triage.ExitFacts{Provider: "e2b", Raw: "-1"}, unseen, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "any signal"},
		"e2b -1, counted":           {triage.ExitFacts{Provider: "e2b", Raw: "-1", OOMKills: new(int64(1))}, unseen, sandbox.ClassKilledUnknown, sandbox.CauseOOM, sandbox.Probable, "not recorded"},
		"e2b deadline":              {triage.ExitFacts{Provider: "e2b", Raw: "deadline_exceeded"}, unseen, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable, "may still run"},
		"e2b deadline, ours":        {triage.ExitFacts{Provider: "e2b", Raw: "deadline_exceeded", TimedOut: true}, unseen, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Certain, "recorded"},
		"e2b bad cwd":               {triage.ExitFacts{Provider: "e2b", Raw: "invalid_argument"}, unseen, sandbox.ClassLauncher, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "did not start"},
		"e2b no such pid":           {triage.ExitFacts{Provider: "e2b", Raw: "not_found"}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "how it ended is unknown"},
		"e2b unavailable":           {triage.ExitFacts{Provider: "e2b", Raw: "Unavailable"}, unseen, sandbox.ClassInfra, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "failed"},
		"e2b stream lost":           {triage.ExitFacts{Provider: "e2b", StreamLost: true}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "was lost"},
		"e2b lost and gone":         {triage.ExitFacts{Provider: "e2b", StreamLost: true, Gone: true}, unseen, sandbox.ClassGone, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "recorded"},
		"novita through python":     {triage.ExitFacts{Provider: "novita", Raw: "Command exited with code -9 and error:\nKilled"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "-9"},
		"novita exit code -9":       {triage.ExitFacts{Provider: "novita", Raw: "exit code -9"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "-9"},
		"novita -1":                 {triage.ExitFacts{Provider: "novita", Raw: "-1"}, unseen, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "any signal"},
		"daytona -1":                {triage.ExitFacts{Provider: "daytona", Raw: "-1"}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "does not tell which"},
		"daytona -1, counted":       {triage.ExitFacts{Provider: "daytona", Raw: "-1", OOMKills: new(int64(1))}, unseen, sandbox.ClassTransport, sandbox.CauseOOM, sandbox.Probable, "not recorded"},
		"daytona 137":               {triage.ExitFacts{Provider: "daytona", Raw: "137"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "137"},
		"daytona 137, counted":      {triage.ExitFacts{Provider: "daytona", Raw: "137", OOMKills: new(int64(1))}, 137, sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable, "nothing shows which process"},
		"daytona 408":               {triage.ExitFacts{Provider: "daytona", Raw: "HTTP 408"}, unseen, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable, "output is lost"},
		"daytona timeout by name":   {triage.ExitFacts{Provider: "daytona", Raw: "PROCESS_EXECUTION_TIMEOUT"}, unseen, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Certain, "process group"},
		"daytona timeout, counted":  {triage.ExitFacts{Provider: "daytona", Raw: "PROCESS_EXECUTION_TIMEOUT", OOMKills: new(int64(1))}, unseen, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Certain, "1"},
		"daytona request timeout":   {triage.ExitFacts{Provider: "daytona", Raw: "REQUEST_TIMEOUT"}, unseen, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable, "proxy"},
		"daytona 502":               {triage.ExitFacts{Provider: "daytona", Raw: "502"}, unseen, sandbox.ClassInfra, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "daemon in the sandbox is dead"},
		"daytona 504":               {triage.ExitFacts{Provider: "daytona", Raw: "504"}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "may still run"},
		"daytona session ended":     {triage.ExitFacts{Provider: "daytona", Raw: "SESSION_ENDED"}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "not the sandbox"},
		"daytona stream lost":       {triage.ExitFacts{Provider: "daytona", StreamLost: true}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "was lost"},
		"vercel 137":                {triage.ExitFacts{Provider: "vercel", Raw: "137"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "137"},
		"vercel 137 at the limit":   {triage.ExitFacts{Provider: "vercel", Raw: "137", Ran: minute, Limit: minute}, 137, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable, "1m0s of its limit of 1m0s"},
		"vercel 137 just before it": {triage.ExitFacts{Provider: "vercel", Raw: "137", Ran: minute - slack, Limit: minute}, 137, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable, "of its limit of 1m0s"},
		"vercel 137 before the limit": {
			triage.ExitFacts{Provider: "vercel", Raw: "137", Ran: minute - slack - 1, Limit: minute},
			137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "of its limit of 1m0s",
		},
		"vercel 137 at the limit, counted": {
			triage.ExitFacts{Provider: "vercel", Raw: "137", Ran: minute, Limit: minute, OOMKills: new(int64(1))},
			137, sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable, "nothing shows which process",
		},
		"vercel 137, ours":             {triage.ExitFacts{Provider: "vercel", Raw: "137", Ran: minute, Limit: minute, StopBy: "ann"}, 137, sandbox.ClassKilledByUs, sandbox.CauseStopped, sandbox.Certain, "ann"},
		"vercel 130":                   {triage.ExitFacts{Provider: "vercel", Raw: "130"}, 130, sandbox.ClassStopped, sandbox.CauseStopped, sandbox.Probable, "130"},
		"vercel 1 at the limit":        {triage.ExitFacts{Provider: "vercel", Raw: "1", Ran: minute, Limit: minute}, 1, sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "1"},
		"vercel stopped":               {triage.ExitFacts{Provider: "vercel", Raw: "stopped"}, unseen, sandbox.ClassStopped, sandbox.CauseStopped, sandbox.Hint, "stopped while it ran"},
		"vercel stopped at its end":    {triage.ExitFacts{Provider: "vercel", Raw: "stopped", Ran: 5 * minute, Limit: 5 * minute}, unseen, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable, "5m0s of"},
		"vercel aborted":               {triage.ExitFacts{Provider: "vercel", Raw: "aborted"}, unseen, sandbox.ClassInfra, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "aborted its session"},
		"vercel failed":                {triage.ExitFacts{Provider: "vercel", Raw: "failed"}, unseen, sandbox.ClassInfra, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "aborted its session"},
		"vercel sandbox_stopped":       {triage.ExitFacts{Provider: "vercel", Raw: "sandbox_stopped"}, unseen, sandbox.ClassGone, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "has stopped"},
		"vercel sandbox_stopping":      {triage.ExitFacts{Provider: "vercel", Raw: "sandbox_stopping"}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "changing its state"},
		"vercel snapshot_not_found":    {triage.ExitFacts{Provider: "vercel", Raw: "snapshot_not_found"}, unseen, sandbox.ClassGone, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "cannot be resumed"},
		"vercel stream closed":         {triage.ExitFacts{Provider: "vercel", Raw: "sandbox_stream_closed", StreamLost: true}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "was lost"},
		"vercel no final line":         {triage.ExitFacts{Provider: "vercel", StreamLost: true}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "was lost"},
		"monotask session":             {triage.ExitFacts{Provider: "monotask", Raw: "SESSION_TERMINATED"}, unseen, sandbox.ClassGone, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "ended while it ran"},
		"monotask 410":                 {triage.ExitFacts{Provider: "monotask", Raw: "410"}, unseen, sandbox.ClassGone, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "ended while it ran"},
		"monotask container":           {triage.ExitFacts{Provider: "monotask", Raw: "CONTAINER_UNAVAILABLE"}, unseen, sandbox.ClassInfra, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "no container"},
		"monotask state, not a signal": {triage.ExitFacts{Provider: "monotask", Raw: "terminated"}, unseen, sandbox.ClassUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "not an exit"},
		"local -1":                     {triage.ExitFacts{Raw: "-1"}, -1, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "-1"},
		"node":                         {triage.ExitFacts{Provider: "vercel", Raw: "SIGKILL"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "SIGKILL"},
		"rust":                         {triage.ExitFacts{Provider: "daytona", Raw: "signal: 9 (SIGKILL)"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "signal: 9"},
		"another provider's word":      {triage.ExitFacts{Provider: "daytona", Raw: "sandbox_stream_closed"}, unseen, sandbox.ClassUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "sandbox_stream_closed"},
		"an unknown word":              {triage.ExitFacts{Provider: "e2b", Raw: "brand_new"}, unseen, sandbox.ClassUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "brand_new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.facts.Words = exitWordsOf(t, tc.facts.Provider)
			got := triage.ClassifyExit(m, tc.facts)
			if tc.code == unseen {
				assert.Nil(t, got.Code)
			} else if assert.NotNil(t, got.Code) {
				assert.Equal(t, tc.code, *got.Code)
			}
			assert.Equal(t, tc.class, got.Class)
			assert.Equal(t, tc.cause, got.Cause)
			assert.Equal(t, tc.confidence, got.Confidence)
			assert.Equal(t, tc.facts.Raw, got.Raw)
			if assert.NotEmpty(t, got.Evidence) {
				assert.Contains(t, got.Evidence[len(got.Evidence)-1].Value, tc.evidence)
			}
		})
	}
}

// TestExitWordsAreWellFormed: each once, lower case, with a meaning, and none that
// claims memory.
func TestExitWordsAreWellFormed(t *testing.T) {
	t.Parallel()
	for _, kind := range cli.Types() {
		seen := map[string]bool{}
		for _, w := range kind.ExitWords {
			key := kind.Name + " " + w.Raw
			assert.False(t, seen[w.Raw], "%s stands twice", key)
			seen[w.Raw] = true
			assert.Equal(t, strings.ToLower(w.Raw), w.Raw)
			assert.NotEmpty(t, w.Says, key)
			assert.NotEqual(t, sandbox.CauseOOM, w.Cause, "%s: no word proves that memory ran out", key)
			got, found := triage.FindExitWord(kind.ExitWords, " HTTP "+strings.ToUpper(w.Raw))
			assert.True(t, found, key)
			assert.Equal(t, w, got)
		}
	}
}
