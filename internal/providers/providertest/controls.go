package providertest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func controlChecks() []Check {
	return []Check{
		{"exit_of_what_was_created", "exit", exitIsTold},
		{"quota_counts_or_is_nil", "quota", quotaCounts},
		{"records_name_something", "records", recordsName},
		{"activity_is_not_in_the_future", "activity", activityIsPast},
		{"an_end_is_proved_after_it", "verify", endIsProved},
		{"reasons_are_for_what_is_missing", "", reasonsFit},
	}
}

func exitIsTold(t T, s *Subject) {
	r := ability[providers.ExitReader](t, s)
	exit, err := r.Exit(s.context(t), s.start(t, sandbox.Spec{}))
	require.NoError(t, err)
	assert.Nil(t, exit, "what runs has no exit")
	_, err = r.Exit(s.context(t), unknownID)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)

	launcher, ok := providers.As[providers.Launcher](s.P)
	if !ok {
		return
	}
	made, err := launcher.Create(s.context(t), sandbox.Spec{Command: []string{"sh", "-c", "exit 3"}})
	require.NoError(t, err)
	s.discard(t, made.ID)
	told := s.c.Eventually(s.c.Limit, func() bool {
		exit, err = r.Exit(s.context(t), made.ID)
		return err != nil || exit != nil
	})
	if _, gone := s.P.Get(s.context(t), made.ID); missing(err) && missing(gone) {
		return // it ended with its program and is forgotten already
	}
	require.NoError(t, err)
	require.True(t, told && exit != nil && exit.Code != nil, "its exit is never told")
	assert.Equal(t, 3, *exit.Code)
	assert.Equal(t, sandbox.ClassAgentError, exit.Class)
}

func quotaCounts(t T, s *Subject) {
	r := ability[providers.QuotaReader](t, s)
	s.start(t, sandbox.Spec{}) // an account without any may not be known
	quotas, err := r.Quota(s.context(t))
	require.NoError(t, err)
	for _, q := range quotas {
		assert.NotEmpty(t, q.Name, "a limit has a name")
		for what, n := range map[string]*float64{"used": q.Used, "limit": q.Limit} {
			assert.True(t, n == nil || *n >= 0, "%s: %s is negative", q.Name, what)
		}
	}
	canceledIsCanceled(t, s, func(ctx context.Context) error { _, err := r.Quota(ctx); return err })
}

func recordsName(t T, s *Subject) {
	r := ability[providers.Recorder](t, s)
	id := s.start(t, sandbox.Spec{})
	seen := false
	for record, err := range r.Records(s.context(t)) {
		require.NoError(t, err)
		assert.True(t, record.SandboxID != "" || record.TaskID != "", "a record names nothing")
		seen = seen || record.SandboxID == id
	}
	assert.True(t, seen, "what runs is in no record")
	canceledIsCanceled(t, s, func(ctx context.Context) error {
		for _, err := range r.Records(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func activityIsPast(t T, s *Subject) {
	r := ability[providers.ActivityReader](t, s)
	a, err := r.Activity(s.context(t), s.start(t, sandbox.Spec{}))
	require.NoError(t, err)
	for what, at := range map[string]time.Time{"work": a.LastWorkAt, "heartbeat": a.LastHeartbeatAt} {
		assert.False(t, at.After(time.Now().Add(time.Minute)), "the last %s is in the future", what)
	}
	_, err = r.Activity(s.context(t), unknownID)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
}

func endIsProved(t T, s *Subject) {
	v := ability[providers.Verifier](t, s)
	id := s.start(t, sandbox.Spec{})
	began := time.Now()
	look := func() (providers.Proof, error) {
		return v.VerifyEnd(s.context(t), id, providers.EndQuery{Since: began, Now: time.Now()})
	}
	proof, err := look()
	if err == nil {
		assert.NotEqual(t, sandbox.True, proof.Ended, "the end of what runs is proved")
		assert.NotEmpty(t, proof.Reason, "what is not proved says why")
	}
	s.end(t, id)
	require.True(t, s.c.Eventually(s.c.Limit, func() bool {
		proof, err = look()
		return err == nil && proof.Ended == sandbox.True
	}), "its end is never proved: %s (%v)", proof.Reason, err)
}

func reasonsFit(t T, s *Subject) {
	e, ok := providers.As[providers.Explainer](s.P)
	if !ok {
		t.Skipf("%s gives no reasons", s.P.Type())
		return
	}
	for _, a := range providers.Abilities() {
		if a.Has(s.P) {
			assert.Empty(t, e.WhyNot(a.Name), "%s: it is there", a.Name)
		}
	}
}

// canceledIsCanceled: who has left is not told that the provider failed.
func canceledIsCanceled(t T, s *Subject, call func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(s.context(t))
	cancel()
	err := call(ctx)
	assert.True(t, err == nil || errors.Is(err, context.Canceled) || fault.KindOf(err) == fault.KindCanceled, "%v", err)
}
