package triage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

// TestWordsOfAProvider: a word is found in the list that is given, in any letter case
// and with a leading HTTP, and means nothing without that list.
func TestWordsOfAProvider(t *testing.T) {
	t.Parallel()
	list := sandbox.TimeoutWords(sandbox.Certain, "its limit was over", "too_long", "408")
	for raw, known := range map[string]bool{"too_long": true, " TOO_LONG ": true, "HTTP 408": true, "408": true, "409": false, "": false} {
		_, found := FindExitWord(list, raw)
		assert.Equal(t, known, found, raw)
	}
	got := ClassifyExit(NewMatcher(), ExitFacts{Words: list, Provider: "p", Raw: "Too_Long"})
	assert.Equal(t, sandbox.ClassTimeout, got.Class)
	assert.Equal(t, sandbox.Certain, got.Confidence)
	assert.Nil(t, got.Code, "a word is no code")
	assert.Equal(t, sandbox.Evidence{What: "meaning", Value: "its limit was over", Source: "p"}, got.Evidence[1])
	got = ClassifyExit(NewMatcher(), ExitFacts{Provider: "p", Raw: "too_long"})
	assert.Equal(t, sandbox.ClassUnknown, got.Class, "the name alone gives a word no meaning")
	list = sandbox.ExitWords(sandbox.ClassGone, "it is gone", "137")
	got = ClassifyExit(NewMatcher(), ExitFacts{Words: list, Raw: "137", Ran: time.Minute})
	assert.Equal(t, sandbox.ClassGone, got.Class, "a provider's word beats the number")
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

// FuzzExitWord holds that no provider's word makes memory the cause, and that
// whatever is said has one class.
func FuzzExitWord(f *testing.F) {
	classes := []sandbox.Class{sandbox.ClassKilledUnknown, sandbox.ClassStopped, sandbox.ClassTransport, sandbox.ClassGone, sandbox.ClassInfra}
	f.Add("-1", "-1", uint8(0), int64(60), int64(60))
	f.Add("stopped", "HTTP stopped", uint8(1), int64(60), int64(60))
	f.Add("canceled", "signal: 9 (SIGKILL)", uint8(2), int64(-1), int64(1))
	m := NewMatcher()
	f.Fuzz(func(t *testing.T, word, raw string, class uint8, ran, limit int64) {
		list := sandbox.ExitWords(classes[int(class)%len(classes)], "what it says", word)
		got := ClassifyExit(m, ExitFacts{Words: list, Raw: raw, Ran: time.Duration(ran), Limit: time.Duration(limit)})
		if got.Class == "" || got.Confidence == "" || got.Cause == sandbox.CauseOOM || got.Class == sandbox.ClassOOM {
			t.Fatalf("%q as %q gives %+v", raw, word, got)
		}
	})
}
