package providertest_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/providertest"
)

// config tests a fake with pages of two rows and a latency.
func config(o fake.Options, prepare func(*fake.Provider)) providertest.Config {
	o.PageSize = 2
	return providertest.Config{
		New: func(t providertest.T) providers.Provider {
			p := fake.New(o)
			t.Cleanup(p.Release)
			prepare(p)
			return p
		},
		Paused: func(_ providertest.T, p providers.Provider) string {
			f, ok := p.(*fake.Provider)
			if !ok {
				return ""
			}
			return f.Add(fake.Seed{Sandbox: sandbox.Sandbox{State: sandbox.StatePaused}})[0]
		},
		Orphan: func(_ providertest.T, p providers.Provider) string {
			f, ok := p.(*fake.Provider)
			if !ok {
				return ""
			}
			id := f.Add(fake.Seed{})[0]
			f.Orphan(id)
			return id
		},
		Many: 5, Simulated: true,
		Limit:   5 * time.Second,
		Secrets: []string{fake.Secret},
	}
}

func honest(*fake.Provider) {}

func TestHonestFakesPass(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]fake.Options{
		"at once":           {},
		"slow":              {ProvisionFor: 20 * time.Millisecond, EndFor: 30 * time.Millisecond, Latency: time.Millisecond},
		"gone after":        {After: fake.AfterGone, EndFor: 5 * time.Millisecond},
		"missing after":     {After: fake.AfterMissing, EndFor: 5 * time.Millisecond},
		"other name":        {Name: "prod", Type: "e2b"},
		"log without times": {Undated: true},
		"flapping listing":  {After: fake.AfterKept, Flap: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			providertest.Run(t, config(o, honest))
		})
	}
}

// failed runs every check against a fake in a bubble and returns the names of the failed ones.
func failed(t *testing.T, o fake.Options, prepare func(*fake.Provider)) []string {
	t.Helper()
	var red []string
	for _, check := range providertest.Checks() {
		synctest.Test(t, func(t *testing.T) {
			if v := providertest.Attempt(t.Context(), config(o, prepare), check); v.Failed {
				require.NotEmpty(t, v.Messages, check.Name)
				red = append(red, check.Name)
			}
		})
	}
	return red
}

func TestHonestFakeIsGreenInABubble(t *testing.T) {
	t.Parallel()
	assert.Empty(t, failed(t, fake.Options{Latency: 20 * time.Millisecond, ProvisionFor: time.Second, EndFor: time.Second}, honest))
}

func TestEveryLieTurnsTheSuiteRed(t *testing.T) {
	t.Parallel()
	want := map[fake.Lie]string{
		fake.LieResumeOnRead:   "reading_wakes_nothing",
		fake.LieEndOnRead:      "reading_changes_nothing",
		fake.LieGoneForUnknown: "get_of_unknown_is_not_found",
		fake.LieLeak:           "no_goroutine_is_left",
		fake.LieDeaf:           "canceled_calls_return_at_once",
		fake.LieShowEnv:        "create_hides_env_values",
		fake.LieEnvInLogs:      "create_hides_env_values",
		fake.LieSecretInError:  "errors_are_faults",
		fake.LieZeroUsage:      "usage_is_nil_where_unknown",
		fake.LieMixedStreams:   "exec_returns_code_and_streams",
		fake.LieTailAll:        "logs_tail",
		fake.LieEmptyLabels:    "create_applies_the_spec",
		fake.LieDropsLabels:    "labels_change_and_the_others_stay",
		fake.LieKeepsEnd:       "extend_moves_the_end_and_never_shortens",
		fake.LieShortens:       "extend_moves_the_end_and_never_shortens",
		fake.LieAnswersTwice:   "terminate_twice_is_gone",
		fake.LieListsTwice:     "list_reads_every_page_once",
		fake.LieIndependent:    "verify_takes_no_forgetting_for_an_independent_witness",
		fake.LieOtherID:        "get_answers_about_the_id_that_was_asked",

		fake.LieEndsWithProgram: "linger_keeps_the_sandbox",
		fake.LieForgetsExit:     "linger_keeps_the_exit",
		fake.LieFollowsOn:       "linger_ends_a_follow_with_the_program",
		fake.LieShutAfter:       "linger_lets_commands_in",
		fake.LieOwnNonce:        "create_keeps_the_callers_marks",

		fake.LieStaleLog:      "what_was_written_is_no_silence",
		fake.LieHidesCommands: "what_another_client_runs_is_no_silence",
		fake.LieLogsLooks:     "what_sbx_does_is_no_work",
	}
	require.Len(t, want, len(fake.Lies()), "every lie is caught by a check")
	for lie, check := range want {
		t.Run(string(lie), func(t *testing.T) {
			t.Parallel()
			assert.Contains(t, failed(t, fake.Options{}, func(p *fake.Provider) { p.Tell(lie) }), check)
		})
	}
}

func TestEveryFaultTurnsTheSuiteRed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault fake.Fault
		check string
	}{
		"page 2 is dropped in silence": {fake.Fault{Op: fake.OpList, Page: 2, Skip: true}, "list_reads_every_page_once"},
		"terminate has no effect":      {fake.Fault{Op: fake.OpTerminate, Skip: true}, "terminate_ends"},
		"listing fails":                {fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "planted")}, "list_contains_what_was_created"},
		"get hangs":                    {fake.Fault{Op: fake.OpGet, Hang: true}, "get_agrees_with_list"},
		"exec fails":                   {fake.Fault{Op: fake.OpExec, Err: fault.New(fault.KindAuth, "planted")}, "exec_reads_stdin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Contains(t, failed(t, fake.Options{}, func(p *fake.Provider) { p.Break(tc.fault) }), tc.check)
		})
	}
}

func TestOnlyMissingAbilitiesAreSkipped(t *testing.T) {
	t.Parallel()
	for _, check := range providertest.Checks() {
		c := config(fake.Options{}, honest)
		c.New = func(providertest.T) providers.Provider { return fake.New(fake.Options{}).Bare() }
		c.Start = func(providertest.T, providers.Provider, sandbox.Spec) string { return "" }
		if check.Ability == "" {
			continue
		}
		v := providertest.Attempt(t.Context(), c, check)
		assert.True(t, v.Skipped, "%s needs %s", check.Name, check.Ability)
		assert.False(t, v.Failed, "%s: %v", check.Name, v.Messages)
	}
}

func TestAPanicIsRed(t *testing.T) {
	t.Parallel()
	v := providertest.Attempt(t.Context(), config(fake.Options{}, honest), providertest.Check{
		Name: "panics", Run: func(providertest.T, *providertest.Subject) { panic("planted") },
	})
	assert.True(t, v.Failed)
	assert.Contains(t, v.Messages[0], "planted")
}

func TestNamesOfChecksAreUnique(t *testing.T) {
	t.Parallel()
	var names []string
	for _, c := range providertest.Checks() {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	assert.Len(t, slices.Compact(slices.Clone(names)), len(names))
}
