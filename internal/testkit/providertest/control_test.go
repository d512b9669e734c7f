package providertest_test

import (
	"context"
	"errors"
	"iter"
	"strings"
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

// liar is the fake with a wrong ability; a nil field is correct.
type liar struct {
	*fake.Provider

	exit     func(id string, truth *sandbox.Exit, err error) (*sandbox.Exit, error)
	admit    error
	quota    func(truth []providers.Quota) []providers.Quota
	record   func(truth providers.Record) providers.Record
	mute     bool // records end in silence where they fail
	insists  bool // records go on after their consumer
	activity func(truth providers.Activity, err error) (providers.Activity, error)
	verify   func(ctx context.Context, truth providers.Proof, err error) (providers.Proof, error)
	check    func(ctx context.Context, truth []providers.Check) []providers.Check
	whyNot   func(ability string) string
}

func (l liar) Exit(ctx context.Context, id string) (*sandbox.Exit, error) {
	got, err := l.Provider.Exit(ctx, id)
	if l.exit != nil {
		return l.exit(id, got, err)
	}
	return got, err
}

func (l liar) Admit(ctx context.Context, memoryBytes int64) error {
	if l.admit != nil {
		return l.admit
	}
	return l.Provider.Admit(ctx, memoryBytes)
}

func (l liar) Quota(ctx context.Context) ([]providers.Quota, error) {
	got, err := l.Provider.Quota(ctx)
	if l.quota != nil && err == nil {
		got = l.quota(got)
	}
	return got, err
}

func (l liar) Records(ctx context.Context) iter.Seq2[providers.Record, error] {
	return func(yield func(providers.Record, error) bool) {
		for r, err := range l.Provider.Records(ctx) {
			if err != nil && l.mute {
				return
			}
			if l.record != nil && err == nil {
				r = l.record(r)
			}
			if !yield(r, err) && !l.insists {
				return
			}
			if l.insists {
				yield(r, err)
			}
		}
	}
}

func (l liar) Activity(ctx context.Context, id string) (providers.Activity, error) {
	got, err := l.Provider.Activity(ctx, id)
	if l.activity != nil {
		return l.activity(got, err)
	}
	return got, err
}

func (l liar) VerifyEnd(ctx context.Context, id string, q providers.EndQuery) (providers.Proof, error) {
	got, err := l.Provider.VerifyEnd(ctx, id, q)
	if l.verify != nil {
		return l.verify(ctx, got, err)
	}
	return got, err
}

func (l liar) Check(ctx context.Context) []providers.Check {
	got := l.Provider.Check(ctx)
	if l.check != nil {
		return l.check(ctx, got)
	}
	return got
}

func (l liar) WhyNot(ability string) string {
	if l.whyNot != nil {
		return l.whyNot(ability)
	}
	return ""
}

// lie is a liar with the check that fails and its message.
type lie struct {
	liar        liar
	check, said string
}

func exitLies() map[string]lie {
	class := sandbox.ClassOK
	return map[string]lie{
		"a failure is code 0": {liar{exit: func(_ string, e *sandbox.Exit, err error) (*sandbox.Exit, error) {
			if e != nil {
				e = &sandbox.Exit{Code: new(int), Class: class}
			}
			return e, err
		}}, "exit_tells_how_a_program_ended", "expected: 3"},
		"a code of its own is a lost connection": {liar{exit: func(_ string, e *sandbox.Exit, err error) (*sandbox.Exit, error) {
			if e != nil && *e.Code == 255 {
				e = &sandbox.Exit{Code: e.Code, Class: sandbox.ClassTransport}
			}
			return e, err
		}}, "exit_is_the_programs_own", "the program's own exit code"},
		"a failure is in order": {liar{exit: func(_ string, e *sandbox.Exit, err error) (*sandbox.Exit, error) {
			if e != nil {
				e = &sandbox.Exit{Code: e.Code, Class: class}
			}
			return e, err
		}}, "exit_tells_how_a_program_ended", "classified"},
		"an exit without a code": {liar{exit: func(_ string, e *sandbox.Exit, err error) (*sandbox.Exit, error) {
			if e != nil {
				e = &sandbox.Exit{Class: sandbox.ClassUnknown}
			}
			return e, err
		}}, "exit_tells_how_a_program_ended", "has a code"},
		"no exit ever comes": {liar{exit: func(_ string, _ *sandbox.Exit, err error) (*sandbox.Exit, error) {
			return nil, err
		}}, "exit_tells_how_a_program_ended", "no exit comes"},
		"what runs has ended": {liar{exit: func(_ string, _ *sandbox.Exit, err error) (*sandbox.Exit, error) {
			return &sandbox.Exit{Code: new(int)}, err
		}}, "exit_is_nil_while_it_runs", "what runs has no exit"},
		"an unknown one runs": {liar{exit: func(_ string, e *sandbox.Exit, _ error) (*sandbox.Exit, error) {
			return e, nil
		}}, "exit_of_unknown_is_not_found", "not_found"},
		"a canceled exit is none": {liar{exit: func(_ string, e *sandbox.Exit, _ error) (*sandbox.Exit, error) {
			return e, nil
		}}, "canceled_calls_return_at_once", "exit:"},
	}
}

func admitLies() map[string]lie {
	const check = "admission_is_yes_or_a_reason"
	return map[string]lie{
		"not now is another kind": {liar{admit: fault.New(fault.KindUnavailable, "full")}, check, "full"},
		"not now is no fault":     {liar{admit: errors.New("full")}, check, "full"},
		"a reason of two lines":   {liar{admit: fault.New(fault.KindRefused, "full\nof it")}, check, "a reason is one line"},
	}
}

func quotaLies() map[string]lie {
	edit := func(f func(*providers.Quota)) func([]providers.Quota) []providers.Quota {
		return func(all []providers.Quota) []providers.Quota {
			f(&all[0])
			return all
		}
	}
	const check = "quota_tells_sane_limits"
	return map[string]lie{
		"a negative use":       {liar{quota: edit(func(q *providers.Quota) { q.Used = new(-1.0) })}, check, "used is no amount"},
		"a negative limit":     {liar{quota: edit(func(q *providers.Quota) { q.Limit = new(-1.0) })}, check, "limit is no amount"},
		"nothing is used":      {liar{quota: edit(func(q *providers.Quota) { q.Used = new(0.0) })}, check, "one runs"},
		"a limit of what":      {liar{quota: edit(func(q *providers.Quota) { q.Name = "" })}, check, "a limit has a name"},
		"a limit in what":      {liar{quota: edit(func(q *providers.Quota) { q.Unit = "" })}, check, "has a unit"},
		"no limits, no error":  {liar{quota: func([]providers.Quota) []providers.Quota { return nil }}, check, "not an empty answer"},
		"a limit comes twice":  {liar{quota: func(all []providers.Quota) []providers.Quota { return append(all, all...) }}, check, "is told twice"},
		"a limit is no number": {liar{quota: edit(func(q *providers.Quota) { q.Limit = new(nan()) })}, check, "limit is no amount"},
	}
}

func nan() float64 {
	var zero float64
	return zero / zero
}

func recordLies() map[string]lie {
	const check = "records_name_what_they_are_of"
	return map[string]lie{
		"records of nothing": {liar{record: func(providers.Record) providers.Record { return providers.Record{Live: sandbox.Unknown} }}, check, "a record of nothing"},
		"what runs should not": {liar{record: func(r providers.Record) providers.Record {
			r.Live = sandbox.False
			return r
		}}, check, "says that it should not"},
		"another's task": {liar{record: func(r providers.Record) providers.Record {
			r.TaskID = "t-0000"
			return r
		}}, check, "another task"},
		"no verdict": {liar{record: func(r providers.Record) providers.Record {
			r.Live = ""
			return r
		}}, check, "does not contain"},
		"they go on":        {liar{insists: true}, check, "go on after their consumer"},
		"silent on failure": {liar{mute: true}, "canceled_calls_return_at_once", "records:"},
		"silent when late":  {liar{mute: true}, "a_passed_deadline_is_a_timeout", "records:"},
	}
}

func activityLies() map[string]lie {
	const check = "activity_lies_in_the_past"
	return map[string]lie{
		"work to come": {liar{activity: func(a providers.Activity, err error) (providers.Activity, error) {
			a.LastWorkAt = time.Now().Add(time.Hour)
			return a, err
		}}, check, "the last work lies in the future"},
		"a heartbeat to come": {liar{activity: func(a providers.Activity, err error) (providers.Activity, error) {
			a.LastHeartbeatAt = time.Now().Add(time.Hour)
			return a, err
		}}, check, "the last heartbeat lies in the future"},
		"an unknown one is quiet": {liar{activity: func(a providers.Activity, _ error) (providers.Activity, error) {
			return a, nil
		}}, check, "not_found"},
	}
}

func verifyLies() map[string]lie {
	proved := providers.Proof{Ended: sandbox.True, Evidence: []sandbox.Evidence{{What: "host", Value: "silent"}}}
	always := func(p providers.Proof) func(context.Context, providers.Proof, error) (providers.Proof, error) {
		return func(_ context.Context, _ providers.Proof, err error) (providers.Proof, error) { return p, err }
	}
	return map[string]lie{
		"what runs has ended": {liar{verify: always(proved)}, "verify_does_not_prove_what_runs", "its end is proved"},
		"no proof, no reason": {liar{verify: func(_ context.Context, p providers.Proof, err error) (providers.Proof, error) {
			p.Reason = ""
			return p, err
		}}, "verify_does_not_prove_what_runs", "says why"},
		"an end is never proved":   {liar{verify: always(providers.Proof{Ended: sandbox.Unknown, Reason: "who knows"})}, "verify_proves_an_end", "never proved: who knows"},
		"a delete is never proved": {liar{verify: always(providers.Proof{Ended: sandbox.False, Reason: "its name is there"})}, "verify_proves_a_delete", "never proved: its name is there"},
		"a proof by nothing":       {liar{verify: always(providers.Proof{Ended: sandbox.True})}, "verify_proves_an_end", "a proof has evidence"},
		"a canceled look is one": {liar{verify: func(_ context.Context, _ providers.Proof, _ error) (providers.Proof, error) {
			return proved, nil
		}}, "canceled_calls_return_at_once", "verify:"},
	}
}

func checkLies() map[string]lie {
	const check = "doctor_finds_something"
	finds := func(found ...providers.Check) func(context.Context, []providers.Check) []providers.Check {
		return func(context.Context, []providers.Check) []providers.Check { return found }
	}
	return map[string]lie{
		"finds nothing":        {liar{check: finds()}, check, "a doctor says something"},
		"a finding of what":    {liar{check: finds(providers.Check{Verdict: sandbox.True, Message: "fine"})}, check, "a finding has a name"},
		"a finding says what":  {liar{check: finds(providers.Check{Check: "api", Verdict: sandbox.True})}, check, "says what was found"},
		"no verdict":           {liar{check: finds(providers.Check{Check: "api", Message: "fine"})}, check, "does not contain"},
		"a finding tells keys": {liar{check: finds(providers.Check{Check: "api", Verdict: sandbox.True, Message: "key " + fake.Secret})}, check, "quotes a secret"},
		"silent when canceled": {liar{check: func(ctx context.Context, truth []providers.Check) []providers.Check {
			if ctx.Err() != nil {
				return nil
			}
			return truth
		}}, check, "a doctor says something"},
	}
}

func reasonLies() map[string]lie {
	const check = "reasons_are_for_what_is_missing"
	because := func(why string) func(string) string { return func(string) string { return why } }
	return map[string]lie{
		"a reason for what is there": {liar{whyNot: func(ability string) string {
			if ability == "usage" {
				return "the API has none"
			}
			return ""
		}}, check, "it has usage, and says why not"},
		"a reason for everything": {liar{whyNot: because("no")}, check, "for what nobody has"},
		"a reason of two lines":   {liar{whyNot: because("no\nand no")}, check, "is one line"},
		"a reason with its stop":  {liar{whyNot: because("it has none.")}, check, "without a full stop"},
	}
}

func TestLiesAboutAbilitiesTurnTheSuiteRed(t *testing.T) {
	t.Parallel()
	for group, lies := range map[string]map[string]lie{
		"exit": exitLies(), "admit": admitLies(), "quota": quotaLies(), "records": recordLies(), "activity": activityLies(),
		"verify": verifyLies(), "doctor": checkLies(), "reasons": reasonLies(),
	} {
		for name, tc := range lies {
			t.Run(group+"/"+name, func(t *testing.T) {
				t.Parallel()
				assert.Empty(t, attempt(t, tc.check, liar{}).Messages, "an honest one passes")
				v := attempt(t, tc.check, tc.liar)
				assert.True(t, v.Failed)
				assert.Contains(t, strings.Join(v.Messages, "\n"), tc.said)
			})
		}
	}
}

// attempt runs one check on a liar, in a bubble.
func attempt(t *testing.T, name string, l liar) providertest.Verdict {
	t.Helper()
	c := config(fake.Options{}, honest)
	c.New = func(rt providertest.T) providers.Provider {
		l.Provider = fake.New(fake.Options{PageSize: 2})
		rt.Cleanup(l.Release)
		return l
	}
	for _, check := range providertest.Checks() {
		if check.Name != name {
			continue
		}
		var v providertest.Verdict
		synctest.Test(t, func(t *testing.T) { v = providertest.Attempt(t.Context(), c, check) })
		require.False(t, v.Skipped, name)
		return v
	}
	require.Fail(t, "no check "+name)
	return providertest.Verdict{}
}
