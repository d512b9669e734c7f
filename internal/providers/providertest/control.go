package providertest

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func controlChecks() []Check {
	return []Check{
		{"exit_tells_how_a_program_ended", "exit", exitTells},
		{"exit_is_nil_while_it_runs", "exit", exitRunning},
		{"exit_of_unknown_is_not_found", "exit", exitUnknown},
		{"admission_is_yes_or_a_reason", "admit", admitReasons},
		{"quota_tells_sane_limits", "quota", quotaSane},
		{"records_name_what_they_are_of", "records", recordsNamed},
		{"activity_lies_in_the_past", "activity", activityPast},
		{"reasons_are_for_what_is_missing", "", reasonsFit},
	}
}

// control is every read of the abilities that tell more than a sandbox's life.
func (s *Subject) control(id string) map[string]func(context.Context) error {
	all := map[string]func(context.Context) error{}
	if r, ok := providers.As[providers.ExitReader](s.P); ok {
		all["exit"] = func(ctx context.Context) error { _, err := r.Exit(ctx, id); return err }
	}
	if r, ok := providers.As[providers.Admitter](s.P); ok {
		all["admit"] = func(ctx context.Context) error { return r.Admit(ctx, 1) }
	}
	if r, ok := providers.As[providers.QuotaReader](s.P); ok {
		all["quota"] = func(ctx context.Context) error { _, err := r.Quota(ctx); return err }
	}
	if r, ok := providers.As[providers.ActivityReader](s.P); ok {
		all["activity"] = func(ctx context.Context) error { _, err := r.Activity(ctx, id); return err }
	}
	if r, ok := providers.As[providers.Recorder](s.P); ok {
		all["records"] = func(ctx context.Context) error { _, err := records(ctx, r); return err }
	}
	return all
}

func records(ctx context.Context, r providers.Recorder) ([]providers.Record, error) {
	var all []providers.Record
	var errs []error
	for row, err := range r.Records(ctx) {
		if errs = append(errs, err); err == nil {
			all = append(all, row)
		}
	}
	return all, errors.Join(errs...)
}

// exitTells lets a program fail. Where the sandbox ends with its program and
// nothing is kept of it, there is no exit to be read.
func exitTells(t T, s *Subject) {
	r := ability[providers.ExitReader](t, s)
	launcher, ok := providers.As[providers.Launcher](s.P)
	if !ok {
		t.Skipf("%s cannot create", s.P.Type())
	}
	made, err := launcher.Create(s.context(t), sandbox.Spec{Command: []string{"sh", "-c", "exit 3"}})
	require.NoError(t, err, "create")
	s.discard(t, made.ID)
	var exit *sandbox.Exit
	require.True(t, s.c.Eventually(s.c.Limit, func() bool {
		exit, err = r.Exit(s.context(t), made.ID)
		return exit != nil || missing(err)
	}), "no exit comes, but %v", err)
	if _, gone := s.P.Get(s.context(t), made.ID); missing(gone) {
		return
	}
	require.NoError(t, err)
	require.NotNil(t, exit.Code, "a program that exits has a code")
	assert.Equal(t, 3, *exit.Code)
	assert.NotEqual(t, sandbox.ClassOK, exit.Class, "a failure is classified as one")
}

func exitRunning(t T, s *Subject) {
	r := ability[providers.ExitReader](t, s)
	id := s.start(t, sandbox.Spec{})
	exit, err := r.Exit(s.context(t), id)
	require.NoError(t, err)
	assert.Nil(t, exit, "what runs has no exit")
}

func exitUnknown(t T, s *Subject) {
	exit, err := ability[providers.ExitReader](t, s).Exit(s.context(t), unknownID)
	assert.Nil(t, exit)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
}

// admitReasons asks for a size that fits anywhere and one that may fit nowhere. Not
// now is one kind, so that whoever waits knows what to wait for.
func admitReasons(t T, s *Subject) {
	a := ability[providers.Admitter](t, s)
	for _, bytes := range []int64{0, 1 << 20, 1 << 50} {
		err := a.Admit(s.context(t), bytes)
		if err == nil {
			continue
		}
		var f *fault.Error
		require.ErrorAs(t, err, &f)
		assert.Equal(t, fault.KindRefused, f.Kind, "%d bytes: %v", bytes, err)
		assert.NotContains(t, err.Error(), "\n", "a reason is one line")
	}
}

// quotaSane has a sandbox run: an account may not be known before.
func quotaSane(t T, s *Subject) {
	r := ability[providers.QuotaReader](t, s)
	s.start(t, sandbox.Spec{})
	quotas, err := r.Quota(s.context(t))
	require.NoError(t, err)
	require.NotEmpty(t, quotas, "no limit at all is an error, not an empty answer")
	seen := map[string]bool{}
	for _, q := range quotas {
		assert.NotEmpty(t, q.Name, "a limit has a name")
		assert.NotEmpty(t, q.Unit, "%s has a unit", q.Name)
		for name, n := range map[string]*float64{"used": q.Used, "limit": q.Limit} {
			assert.True(t, n == nil || (*n >= 0 && !math.IsInf(*n, 0)), "%s: %s is no amount", q.Name, name) // NaN is not >= 0
		}
		assert.False(t, q.Unit == "sandboxes" && q.Used != nil && *q.Used < 1, "%s: one runs, so it is counted or not known", q.Name)
		key := q.Name + " of " + q.Scope
		assert.False(t, seen[key], "%s is told twice", key)
		seen[key] = true
	}
}

func recordsNamed(t T, s *Subject) {
	r := ability[providers.Recorder](t, s)
	id := s.start(t, sandbox.Spec{TaskID: "t-7f3a"})
	rows, err := records(s.context(t), r)
	require.NoError(t, err)
	for _, row := range rows {
		assert.True(t, row.SandboxID != "" || row.TaskID != "", "a record of nothing: %+v", row)
		assert.Contains(t, []sandbox.Verdict{sandbox.True, sandbox.False, sandbox.Unknown}, row.Live)
		if row.SandboxID == id {
			assert.NotEqual(t, sandbox.False, row.Live, "it runs, and its record says that it should not")
			assert.Contains(t, []string{"", "t-7f3a"}, row.TaskID, "a record of another task")
		}
	}
	assert.True(t, s.returns(func() {
		for _, err := range r.Records(s.context(t)) {
			_ = err
			break
		}
	}), "records go on after their consumer has stopped")
}

func activityPast(t T, s *Subject) {
	r := ability[providers.ActivityReader](t, s)
	id := s.start(t, sandbox.Spec{})
	a, err := r.Activity(s.context(t), id)
	require.NoError(t, err)
	late := time.Now().Add(time.Minute)
	for name, at := range map[string]time.Time{"work": a.LastWorkAt, "heartbeat": a.LastHeartbeatAt} {
		assert.False(t, at.After(late), "the last %s lies in the future: %s", name, at)
	}
	_, err = r.Activity(s.context(t), unknownID)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
}

// reasonsFit: WhyNot completes a sentence, and only about what is missing.
func reasonsFit(t T, s *Subject) {
	e, ok := providers.As[providers.Explainer](s.P)
	if !ok {
		t.Skipf("%s explains nothing", s.P.Type())
	}
	for _, a := range providers.Abilities() {
		why := e.WhyNot(a.Name)
		assert.False(t, a.Has(s.P) && why != "", "it has %s, and says why not: %s", a.Name, why)
		assert.NotContains(t, why, "\n", "%s: a reason is one line", a.Name)
		assert.False(t, strings.HasSuffix(why, "."), "%s: a reason ends without a full stop: %s", a.Name, why)
	}
	assert.Empty(t, e.WhyNot("no-such-ability"), "a reason for what nobody has")
}
