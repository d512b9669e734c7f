package triage

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

// TestEveryProvidersSpelling is the one table of what providers write about an
// end, and what that proves. evidence is what the last line of it must say.
func TestEveryProvidersSpelling(t *testing.T) {
	t.Parallel()
	const (
		unseen = -1000 // no code
		minute = time.Minute
	)
	m := NewMatcher()
	for name, tc := range map[string]struct {
		facts      ExitFacts
		code       int
		class      sandbox.Class
		cause      sandbox.Cause
		confidence sandbox.Confidence
		evidence   string
	}{
		"e2b 0":                     {ExitFacts{Provider: "e2b", Raw: "exit status 0"}, 0, sandbox.ClassOK, sandbox.CauseNone, sandbox.Certain, "exit status 0"},
		"e2b 3":                     {ExitFacts{Provider: "e2b", Raw: "exit status 3"}, 3, sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "exit status 3"},
		"e2b killed":                {ExitFacts{Provider: "e2b", Raw: "signal: killed"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "signal: killed"},
		"e2b killed, counted":       {ExitFacts{Provider: "e2b", Raw: "signal: killed", OOMKills: new(int64(1)), PeakBytes: new(int64(100)), LimitBytes: new(int64(100))}, 137, sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Certain, "100"},
		"e2b killed, by us":         {ExitFacts{Provider: "e2b", Raw: "signal: killed", StopBy: "ann"}, 137, sandbox.ClassKilledByUs, sandbox.CauseStopped, sandbox.Certain, "ann"},
		"e2b terminated":            {ExitFacts{Provider: "e2b", Raw: "signal: terminated"}, 143, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "signal: terminated"},
		"e2b segfault":              {ExitFacts{Provider: "e2b", Raw: "signal: segmentation fault (core dumped)"}, 139, sandbox.ClassCrash, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "segmentation"},
		"e2b a child":               {ExitFacts{Provider: "e2b", Raw: "exit status 137"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "137"},
		"e2b -1 alone":              {ExitFacts{Provider: "e2b", Raw: "-1"}, unseen, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "any signal"},
		"e2b -1, counted":           {ExitFacts{Provider: "e2b", Raw: "-1", OOMKills: new(int64(1))}, unseen, sandbox.ClassKilledUnknown, sandbox.CauseOOM, sandbox.Probable, "not seen"},
		"e2b deadline":              {ExitFacts{Provider: "e2b", Raw: "deadline_exceeded"}, unseen, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable, "may run on"},
		"e2b deadline, ours":        {ExitFacts{Provider: "e2b", Raw: "deadline_exceeded", TimedOut: true}, unseen, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Certain, "recorded"},
		"e2b bad cwd":               {ExitFacts{Provider: "e2b", Raw: "invalid_argument"}, unseen, sandbox.ClassLauncher, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "did not start"},
		"e2b no such pid":           {ExitFacts{Provider: "e2b", Raw: "not_found"}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "nobody saw"},
		"e2b unavailable":           {ExitFacts{Provider: "e2b", Raw: "Unavailable"}, unseen, sandbox.ClassInfra, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "failed"},
		"e2b stream lost":           {ExitFacts{Provider: "e2b", StreamLost: true}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "broke off"},
		"e2b lost and gone":         {ExitFacts{Provider: "e2b", StreamLost: true, Gone: true}, unseen, sandbox.ClassGone, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "recorded"},
		"novita through python":     {ExitFacts{Provider: "novita", Raw: "Command exited with code -9 and error:\nKilled"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "-9"},
		"novita exit code -9":       {ExitFacts{Provider: "novita", Raw: "exit code -9"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "-9"},
		"novita -1":                 {ExitFacts{Provider: "novita", Raw: "-1"}, unseen, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "any signal"},
		"daytona -1":                {ExitFacts{Provider: "daytona", Raw: "-1"}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "says no more"},
		"daytona -1, counted":       {ExitFacts{Provider: "daytona", Raw: "-1", OOMKills: new(int64(1))}, unseen, sandbox.ClassTransport, sandbox.CauseOOM, sandbox.Probable, "not seen"},
		"daytona 137":               {ExitFacts{Provider: "daytona", Raw: "137"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "137"},
		"daytona 137, counted":      {ExitFacts{Provider: "daytona", Raw: "137", OOMKills: new(int64(1))}, 137, sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable, "its own limit"},
		"daytona 408":               {ExitFacts{Provider: "daytona", Raw: "HTTP 408"}, unseen, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable, "output is lost"},
		"daytona timeout by name":   {ExitFacts{Provider: "daytona", Raw: "PROCESS_EXECUTION_TIMEOUT"}, unseen, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Certain, "process group"},
		"daytona timeout, counted":  {ExitFacts{Provider: "daytona", Raw: "PROCESS_EXECUTION_TIMEOUT", OOMKills: new(int64(1))}, unseen, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Certain, "1"},
		"daytona request timeout":   {ExitFacts{Provider: "daytona", Raw: "REQUEST_TIMEOUT"}, unseen, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable, "proxy"},
		"daytona 502":               {ExitFacts{Provider: "daytona", Raw: "502"}, unseen, sandbox.ClassInfra, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "daemon inside is dead"},
		"daytona 504":               {ExitFacts{Provider: "daytona", Raw: "504"}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "may run on"},
		"daytona session ended":     {ExitFacts{Provider: "daytona", Raw: "SESSION_ENDED"}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "not the sandbox"},
		"daytona stream lost":       {ExitFacts{Provider: "daytona", StreamLost: true}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "broke off"},
		"vercel 137":                {ExitFacts{Provider: "vercel", Raw: "137"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "137"},
		"vercel 137 at the limit":   {ExitFacts{Provider: "vercel", Raw: "137", Ran: minute, Limit: minute}, 137, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable, "1m0s of the 1m0s"},
		"vercel 137 just before it": {ExitFacts{Provider: "vercel", Raw: "137", Ran: minute - limitSlack, Limit: minute}, 137, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable, "of the 1m0s"},
		"vercel 137 before the limit": {
			ExitFacts{Provider: "vercel", Raw: "137", Ran: minute - limitSlack - 1, Limit: minute},
			137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "of the 1m0s",
		},
		"vercel 137 at the limit, counted": {
			ExitFacts{Provider: "vercel", Raw: "137", Ran: minute, Limit: minute, OOMKills: new(int64(1))},
			137, sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable, "its own limit",
		},
		"vercel 137, ours":             {ExitFacts{Provider: "vercel", Raw: "137", Ran: minute, Limit: minute, StopBy: "ann"}, 137, sandbox.ClassKilledByUs, sandbox.CauseStopped, sandbox.Certain, "ann"},
		"vercel 130":                   {ExitFacts{Provider: "vercel", Raw: "130"}, 130, sandbox.ClassStopped, sandbox.CauseStopped, sandbox.Probable, "130"},
		"vercel 1 at the limit":        {ExitFacts{Provider: "vercel", Raw: "1", Ran: minute, Limit: minute}, 1, sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "1"},
		"vercel stopped":               {ExitFacts{Provider: "vercel", Raw: "stopped"}, unseen, sandbox.ClassStopped, sandbox.CauseStopped, sandbox.Hint, "stopped under it"},
		"vercel stopped at its end":    {ExitFacts{Provider: "vercel", Raw: "stopped", Ran: 5 * minute, Limit: 5 * minute}, unseen, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable, "5m0s of"},
		"vercel aborted":               {ExitFacts{Provider: "vercel", Raw: "aborted"}, unseen, sandbox.ClassInfra, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "given up"},
		"vercel failed":                {ExitFacts{Provider: "vercel", Raw: "failed"}, unseen, sandbox.ClassInfra, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "given up"},
		"vercel sandbox_stopped":       {ExitFacts{Provider: "vercel", Raw: "sandbox_stopped"}, unseen, sandbox.ClassGone, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "has stopped"},
		"vercel sandbox_stopping":      {ExitFacts{Provider: "vercel", Raw: "sandbox_stopping"}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "between two states"},
		"vercel snapshot_not_found":    {ExitFacts{Provider: "vercel", Raw: "snapshot_not_found"}, unseen, sandbox.ClassGone, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "cannot be resumed"},
		"vercel stream closed":         {ExitFacts{Provider: "vercel", Raw: "sandbox_stream_closed", StreamLost: true}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "broke off"},
		"vercel no final line":         {ExitFacts{Provider: "vercel", StreamLost: true}, unseen, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "broke off"},
		"cloudflare session":           {ExitFacts{Provider: "cloudflare", Raw: "SESSION_TERMINATED"}, unseen, sandbox.ClassGone, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "ended under it"},
		"monotask 410":                 {ExitFacts{Provider: "monotask", Raw: "410"}, unseen, sandbox.ClassGone, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "ended under it"},
		"monotask container":           {ExitFacts{Provider: "monotask", Raw: "CONTAINER_UNAVAILABLE"}, unseen, sandbox.ClassInfra, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "no container"},
		"monotask state, not a signal": {ExitFacts{Provider: "monotask", Raw: "terminated"}, unseen, sandbox.ClassUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "not an exit"},
		"local -1":                     {ExitFacts{Raw: "-1"}, -1, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "-1"},
		"node":                         {ExitFacts{Provider: "vercel", Raw: "SIGKILL"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "SIGKILL"},
		"rust":                         {ExitFacts{Provider: "daytona", Raw: "signal: 9 (SIGKILL)"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "signal: 9"},
		"another provider's word":      {ExitFacts{Provider: "daytona", Raw: "sandbox_stream_closed"}, unseen, sandbox.ClassUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "sandbox_stream_closed"},
		"an unknown word":              {ExitFacts{Provider: "e2b", Raw: "brand_new"}, unseen, sandbox.ClassUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, "brand_new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ClassifyExit(m, tc.facts)
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

func TestSpellingsAreWellFormed(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range Spellings() {
		key := s.Provider + " " + s.Raw
		assert.False(t, seen[key], "%s stands twice", key)
		seen[key] = true
		assert.Equal(t, strings.ToLower(s.Raw), s.Raw)
		assert.NotEmpty(t, s.Says, key)
		assert.NotEqual(t, sandbox.CauseOOM, s.Cause, "%s: no word proves that memory ran out", key)
		got, found := ReadSpelling(s.Provider, " HTTP "+strings.ToUpper(s.Raw))
		assert.True(t, found, key)
		assert.Equal(t, s, got)
		_, found = ReadSpelling("nobody", s.Raw)
		assert.False(t, found, key)
	}
}

func TestSignalsOfOtherLayers(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"signal: 9": "SIGKILL", "signal: 9 (SIGKILL)": "SIGKILL", "signal: 6 (SIGABRT) (core dumped)": "SIGABRT", "signal 9": "SIGKILL",
		"killed by signal 9": "SIGKILL", "terminated by signal SIGTERM (Polite quit request)": "SIGTERM", "died with <Signals.SIGKILL: 9>.": "SIGKILL",
		"Command failed with exit code -9": "SIGKILL", "process exited with code -15": "SIGTERM", "signal: trace/breakpoint trap": "SIGTRAP", "exit code -9": "SIGKILL",
	} {
		assert.Equal(t, want, ParseExit(raw).Signal, raw)
	}
	for _, raw := range []string{"signal", "signal: ", "signal: 0", "killed by signal", "died with <Signals.SIGDANCE: 99>", "no signal: 9", "command"} {
		assert.Equal(t, Spelled{Death: sandbox.Unknown}, ParseExit(raw), raw)
	}
}

// FuzzReadSpelling holds that no provider's word makes memory the cause, and that
// whatever is said has one class.
func FuzzReadSpelling(f *testing.F) {
	for _, s := range Spellings() {
		f.Add(s.Provider, s.Raw, int64(60), int64(60))
	}
	f.Add("e2b", "signal: 9 (SIGKILL)", int64(-1), int64(1))
	m := NewMatcher()
	f.Fuzz(func(t *testing.T, provider, raw string, ran, limit int64) {
		got := ClassifyExit(m, ExitFacts{Provider: provider, Raw: raw, Ran: time.Duration(ran), Limit: time.Duration(limit)})
		if got.Class == "" || got.Confidence == "" || got.Cause == sandbox.CauseOOM || got.Class == sandbox.ClassOOM {
			t.Fatalf("%s %q gives %+v", provider, raw, got)
		}
	})
}
