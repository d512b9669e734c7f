package monotask_test

import (
	"context"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/monotask"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/monotasktest"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/wiretest"
)

func open(t providertest.T, f *monotasktest.Fake) *monotask.Client {
	p, err := monotask.Type().Open(t.Context(), providers.Profile{Name: "mono", Type: monotask.TypeName, Settings: map[string]string{"url": f.Listen(), "token": monotasktest.Token}},
		providers.Deps{Now: time.Now})
	require.NoError(t, err)
	c, ok := p.(*monotask.Client)
	require.True(t, ok)
	t.Cleanup(c.Close)
	return c
}

func subject(o monotasktest.Options) providertest.Config {
	var fakes providertest.Fakes[*monotasktest.Fake]
	return providertest.Config{
		New: fakes.New(func(t providertest.T) (*monotasktest.Fake, providers.Provider) {
			f := monotasktest.New(t, o)
			return f, open(t, f)
		}),
		Start: func(_ providertest.T, p providers.Provider, spec sandbox.Spec) string {
			return fakes.Of(p).Add(monotasktest.Box{AgentType: spec.AgentType, TaskID: spec.TaskID})
		},
		Write: func(_ providertest.T, p providers.Provider, lines []string) string {
			return fakes.Of(p).Add(monotasktest.Box{Logs: lines})
		},
		Many: 5, Limit: 10 * time.Second, Secrets: []string{monotasktest.Token},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]monotasktest.Options{"at once": {}, "slow": {EndFor: 50 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			providertest.Run(t, subject(o))
		})
	}
}

// TestLiarsTurnTheSuiteRed: the suite finds each wrong worker.
func TestLiarsTurnTheSuiteRed(t *testing.T) {
	t.Parallel()
	providertest.RunLies(t, 300*time.Millisecond, map[string]providertest.Lie{
		"says yes and does nothing": {Config: subject(monotasktest.Options{Deaf: true}), Check: "terminate_ends"},
		"lists what has ended":      {Config: subject(monotasktest.Options{Lists: true}), Check: "ended_is_not_listed_as_running"},
		"ends what is read":         {Config: subject(monotasktest.Options{EndsRead: true}), Check: "reading_changes_nothing"},
	})
}

func TestAListThatIsNoneIsNeverEmpty(t *testing.T) {
	t.Parallel()
	fake := monotasktest.New(t, monotasktest.Options{})
	c := open(t, fake)
	fake.Break(wiretest.Fault{Status: 200, Body: `{"sandboxes":[]}`})
	var last error
	for _, err := range c.List(t.Context(), providers.Query{}) {
		last = err
	}
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(last), "%v", last)
}

func TestWordsOfTheAPIAreNoSandboxes(t *testing.T) {
	t.Parallel()
	fake := monotasktest.New(t, monotasktest.Options{})
	c := open(t, fake)
	for _, id := range []string{"list", "stats", "cleanup"} {
		_, err := c.Get(t.Context(), id)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
		assert.Equal(t, fault.KindUsage, fault.KindOf(c.Terminate(t.Context(), id, providers.TerminateOptions{})))
	}
	assert.Empty(t, fake.Calls(""))
}

func TestVerifyEndHoldsTheListAgainstTheAnswer(t *testing.T) {
	t.Parallel()
	fake := monotasktest.New(t, monotasktest.Options{Lists: true})
	c := open(t, fake)
	id := fake.Add(monotasktest.Box{})
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
	_, err := c.Get(t.Context(), id)
	require.Equal(t, fault.KindNotFound, fault.KindOf(err))
	proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{})
	require.NoError(t, err)
	assert.Equal(t, sandbox.False, proof.Ended)
	assert.Contains(t, proof.Reason, "the list still shows it")
	fake.Change(func(o *monotasktest.Options) { o.Lists = false })
	proof, err = c.VerifyEnd(t.Context(), id, providers.EndQuery{})
	require.NoError(t, err)
	assert.Equal(t, sandbox.True, proof.Ended)
	assert.NotEmpty(t, proof.Evidence)
}

func TestWhatWasSeenIsNotReadAgain(t *testing.T) {
	t.Parallel()
	fake := monotasktest.New(t, monotasktest.Options{})
	c := open(t, fake)
	id := fake.Add(monotasktest.Box{})
	seen, err := c.Get(t.Context(), id)
	require.NoError(t, err)
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{Seen: &seen}))
	assert.Len(t, fake.Calls(""), 2, "a read and the request")

	seen.State = sandbox.StateTerminated
	err = c.Terminate(t.Context(), fake.Add(monotasktest.Box{}), providers.TerminateOptions{Seen: &seen})
	assert.Equal(t, fault.KindGone, fault.KindOf(err))
	assert.Len(t, fake.Calls(""), 2)
}

func TestDoctorHoldsTheCountersAgainstEachOther(t *testing.T) {
	t.Parallel()
	for miscount, want := range map[bool]sandbox.Verdict{false: sandbox.True, true: sandbox.False} {
		fake := monotasktest.New(t, monotasktest.Options{Miscount: miscount})
		c := open(t, fake)
		fake.Add(monotasktest.Box{})
		for _, found := range c.Check(t.Context()) {
			if found.Check == "counters" {
				assert.Equal(t, want, found.Verdict, found.Message)
			}
		}
	}
}

func TestCleanupNeedsTheAdminToken(t *testing.T) {
	t.Parallel()
	fake := monotasktest.New(t, monotasktest.Options{})
	fake.Add(monotasktest.Box{Created: time.Now().Add(-time.Hour)})
	fake.Add(monotasktest.Box{})
	cleaned, err := open(t, fake).Cleanup(t.Context(), false)
	require.NoError(t, err)
	assert.Equal(t, int64(1), *cleaned.Count)
	p, err := monotask.Type().Open(t.Context(), providers.Profile{Name: "mono", Settings: map[string]string{"url": fake.Listen()}}, providers.Deps{Now: time.Now})
	require.NoError(t, err)
	cleaner, ok := p.(providers.ProviderCleaner)
	require.True(t, ok)
	_, err = cleaner.Cleanup(t.Context(), true)
	assert.Equal(t, fault.KindAuth, fault.KindOf(err))
	fake.Break(wiretest.Fault{Status: 200, Body: `"done"`})
	cleaned, err = open(t, fake).Cleanup(t.Context(), true)
	require.NoError(t, err)
	assert.Nil(t, cleaned.Count, "an answer that is not understood counts nothing")
	assert.Len(t, fake.Calls("POST /api/sandbox/cleanup/emergency"), 2)
}

// TestUsageSaysHowLongItRan: duration_ms of the worker (R44).
func TestUsageSaysHowLongItRan(t *testing.T) {
	t.Parallel()
	at := time.Now()
	fake := monotasktest.New(t, monotasktest.Options{Now: func() time.Time { return at }})
	id := fake.Add(monotasktest.Box{Created: at.Add(-45 * time.Second)})
	u, err := open(t, fake).Usage(t.Context(), id)
	require.NoError(t, err)
	require.NotNil(t, u.Duration)
	assert.Equal(t, 45*time.Second, *u.Duration)
	fake.Break(wiretest.Fault{Status: 200, Body: `{"cpu_percent":1,"operations":3,"duration_ms":-5}`})
	u, err = open(t, fake).Usage(t.Context(), id)
	require.NoError(t, err)
	assert.Nil(t, u.Duration, "what cannot be is not known")
}

// TestTheAdminTokenGoesWithCleanupsAlone: the fake refuses it with any other call (R166), unless
// token_scope is all.
func TestTheAdminTokenGoesWithCleanupsAlone(t *testing.T) {
	t.Parallel()
	fake := monotasktest.New(t, monotasktest.Options{})
	id := fake.Add(monotasktest.Box{})
	c := open(t, fake)
	_, err := c.Get(t.Context(), id)
	require.NoError(t, err)
	_, err = c.Usage(t.Context(), id)
	require.NoError(t, err)
	_, err = c.Cleanup(t.Context(), false)
	require.NoError(t, err)

	guarded := monotasktest.New(t, monotasktest.Options{Guarded: true})
	id = guarded.Add(monotasktest.Box{})
	_, err = open(t, guarded).Get(t.Context(), id)
	assert.Equal(t, fault.KindAuth, fault.KindOf(err))
	p, err := monotask.Type().Open(t.Context(), providers.Profile{
		Name: "mono", Settings: map[string]string{"url": guarded.Listen(), "token": monotasktest.Token, "token_scope": "all"},
	}, providers.Deps{Now: time.Now})
	require.NoError(t, err)
	_, err = p.Get(t.Context(), id)
	require.NoError(t, err)
}

func TestLogsInAnyShape(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body string
		want []string
	}{
		"texts":   {`["a","b"]`, []string{"log a", "log b"}},
		"objects": {`[{"timestamp":"2026-11-20T12:00:00Z","level":"error","message":"a"},{"at":"x","line":"b"}]`, []string{"error a", "log b"}},
		"held":    {`{"logs":["a"]}`, []string{"log a"}},
		"ndjson":  {"{\"message\":\"a\"}\n{\"message\":\"b\"}\n", []string{"log a", "log b"}},
		"plain":   {"a\r\n\nb", []string{"log a", "log b"}},
		"empty":   {`[]`, nil},
		"none":    {`{"entries":[]}`, nil},
		"a line":  {`{"message":"a"}`, []string{"log a"}},
		"strange": {`[1,{"x":1},null]`, []string{"log 1", `log {"x":1}`, "log "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := monotasktest.New(t, monotasktest.Options{})
			c := open(t, fake)
			id := fake.Add(monotasktest.Box{})
			fake.Break(wiretest.Fault{Route: "GET /api/sandbox/{id}/logs", Status: http.StatusOK, Body: tc.body + " "})
			var got []string
			for l, err := range c.Logs(t.Context(), id, providers.LogQuery{}) {
				require.NoError(t, err)
				got = append(got, l.Stream+" "+l.Text)
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestAgeStandsInForAMissingCreation(t *testing.T) {
	t.Parallel()
	fake := monotasktest.New(t, monotasktest.Options{})
	c := open(t, fake)
	fake.Break(wiretest.Fault{Status: 200, Body: `{"id":"x","status":"pondering","age_minutes":30}`})
	s, err := c.Get(context.WithoutCancel(t.Context()), "x")
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now().Add(-30*time.Minute), s.CreatedAt, 5*time.Second)
	assert.Equal(t, sandbox.StateUnknown, s.State)
	assert.Equal(t, "pondering", s.RawState)
}

// TestAnAgeThatContradictsTheCreationIsASkew: the creation counts, and the clock is not trusted.
func TestAnAgeThatContradictsTheCreationIsASkew(t *testing.T) {
	t.Parallel()
	for age, want := range map[string]time.Duration{"30": 0, "29.5": 0, "90": time.Hour, "5": -25 * time.Minute, "-1": 0} {
		fake := monotasktest.New(t, monotasktest.Options{})
		c := open(t, fake)
		created := time.Now().Add(-30 * time.Minute).UTC()
		fake.Break(wiretest.Fault{Status: 200, Body: `{"id":"x","status":"running","created_at":"` + created.Format(time.RFC3339Nano) + `","age_minutes":` + age + `}`})
		s, err := c.Get(context.WithoutCancel(t.Context()), "x")
		require.NoError(t, err)
		assert.WithinDuration(t, created, s.CreatedAt, time.Second, age)
		assert.InDelta(t, want.Minutes(), s.ClockSkew.Minutes(), 0.1, age)
	}
}

// TestAFailedOneIsDeleted: a failed sandbox stays in the list until a delete sends its DELETE;
// while it is listed its end is not proved.
func TestAFailedOneIsDeleted(t *testing.T) {
	t.Parallel()
	f := monotasktest.New(t, monotasktest.Options{})
	c := open(t, f)
	id := f.Add(monotasktest.Box{Status: "failed"})
	assert.True(t, c.EndsFailed())
	err := c.Terminate(t.Context(), id, providers.TerminateOptions{})
	assert.Equal(t, fault.KindGone, fault.KindOf(err), "%v", err)
	proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Delete: true})
	require.NoError(t, err)
	assert.Equal(t, sandbox.False, proof.Ended, "it is listed")
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true}))
	_, err = c.Get(t.Context(), id)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
}

// TestARefusalSaysWhatToDoAboutTheToken, which is optional, and which most calls do not carry.
func TestARefusalSaysWhatToDoAboutTheToken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		settings, unset map[string]string
		want            string
	}{
		"none":        {nil, nil, "set MONOTASK_TOKEN, or token_env in the profile"},
		"empty":       {nil, map[string]string{"token": "ADMIN_TOKEN"}, "ADMIN_TOKEN is empty (token_env of prod)"},
		"not sent":    {map[string]string{"token": "secret-7f3a"}, nil, "token_scope: all"},
		"wrong token": {map[string]string{"token": "secret-7f3a", "token_scope": "all"}, nil, "check the key and its rights"},
	} {
		fake := monotasktest.New(t, monotasktest.Options{})
		fake.Break(wiretest.Fault{Status: http.StatusUnauthorized})
		settings := map[string]string{"url": fake.Listen()}
		maps.Copy(settings, tc.settings)
		p, err := monotask.Type().Open(t.Context(), providers.Profile{Name: "prod", Type: monotask.TypeName, Settings: settings, Unset: tc.unset}, providers.Deps{Now: time.Now})
		require.NoError(t, err)
		_, err = p.Get(t.Context(), "x")
		assert.Equal(t, fault.KindAuth, fault.KindOf(err), name)
		assert.Contains(t, fault.HintOf(err), tc.want, name)
	}
}
