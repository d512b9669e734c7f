package providertest

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

const unknownID = "no-such-sandbox-7f3a"

func checkGetAgreesWithList(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{Name: "agreed"})
	got, err := s.P.Get(s.callContext(t), id)
	require.NoError(t, err)
	for _, listed := range s.readList(t) {
		if listed.ID == id {
			if listed.StartedAt.IsZero() { // not every listing has it
				got.StartedAt = listed.StartedAt
			}
			assert.Equal(t, stableFields(listed), stableFields(got), "get and list describe the same sandbox")
			return
		}
	}
	assert.Fail(t, "not listed", "%s is not in the listing", id)
}

func checkGetID(t T, s *Subject) {
	for _, id := range []string{s.startSandbox(t, sandbox.Spec{}), s.startSandbox(t, sandbox.Spec{})} {
		got, err := s.P.Get(s.callContext(t), id)
		require.NoError(t, err)
		assert.Equal(t, id, got.ID, "the answer is about another sandbox")
	}
}

// stableFields are the fields that do not change while a sandbox runs.
func stableFields(b sandbox.Sandbox) sandbox.Sandbox {
	return sandbox.Sandbox{
		Provider: b.Provider, ProviderType: b.ProviderType, ID: b.ID, Name: b.Name, State: b.State,
		CreatedAt: b.CreatedAt, StartedAt: b.StartedAt, ExpiresAt: b.ExpiresAt,
		TaskID: b.TaskID, Template: b.Template, AgentType: b.AgentType,
	}
}

func checkTimes(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	got, err := s.P.Get(s.callContext(t), id)
	require.NoError(t, err)
	late := time.Now().Add(time.Minute) // clocks of two machines may differ a little
	for name, at := range map[string]time.Time{"created": got.CreatedAt, "started": got.StartedAt, "activity": got.LastActivityAt} {
		assert.False(t, at.After(late), "%s lies in the future: %s", name, at)
	}
	if !got.CreatedAt.IsZero() && !got.StartedAt.IsZero() {
		assert.False(t, got.StartedAt.Before(got.CreatedAt), "started before it was created")
	}
}

func checkListContains(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{Name: "listed"})
	i := slices.IndexFunc(s.readList(t), func(b sandbox.Sandbox) bool { return b.ID == id })
	require.GreaterOrEqual(t, i, 0, "%s is not listed", id)
	got := s.readList(t)[i]
	assert.Equal(t, s.P.Name(), got.Provider, "a listed sandbox names its profile")
	assert.Equal(t, s.P.Type(), got.ProviderType, "a listed sandbox names its provider's type")
	assert.Equal(t, sandbox.StateRunning, got.State)
	assert.NotEmpty(t, got.RawState, "the provider's own word is kept")
}

func checkListPages(t T, s *Subject) {
	want := make([]string, 0, s.c.Many)
	for range s.c.Many {
		want = append(want, s.startSandbox(t, sandbox.Spec{}))
	}
	seen := map[string]int{}
	for _, b := range s.readList(t) {
		seen[b.ID]++
	}
	for _, id := range want {
		assert.Equal(t, 1, seen[id], "%s of %d created is listed %d times", id, len(want), seen[id])
	}
}

func checkListTwice(t T, s *Subject) {
	s.startSandbox(t, sandbox.Spec{})
	seq := s.P.List(s.callContext(t), providers.Query{All: true})
	count := func() (n int) {
		for _, err := range seq {
			require.NoError(t, err)
			n++
		}
		return n
	}
	first := count()
	assert.Equal(t, first, count(), "one sequence, read twice, tells the same")
}

func checkListStops(t T, s *Subject) {
	for range s.c.Many {
		s.startSandbox(t, sandbox.Spec{})
	}
	got := 0
	returned := s.returnsInTime(func() {
		for _, err := range s.P.List(s.callContext(t), providers.Query{}) {
			if err == nil {
				got++
			}
			break
		}
	})
	require.True(t, returned, "list goes on after its consumer has stopped")
	assert.Equal(t, 1, got)
}

func checkListQuery(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{Labels: map[string]string{"sbx-check": "narrow"}})
	found := false
	for b, err := range s.P.List(s.callContext(t), providers.Query{States: []sandbox.State{sandbox.StateRunning}}) {
		require.NoError(t, err)
		found = found || b.ID == id
	}
	assert.True(t, found, "a query may return more than it asks for, never less")
}

func checkIDs(t T, s *Subject) {
	s.startSandbox(t, sandbox.Spec{})
	for _, b := range s.readList(t) {
		ref, err := sandbox.ParseRef(b.Ref().String())
		require.NoError(t, err)
		assert.Equal(t, b.Ref(), ref)
		bare, err := sandbox.ParseRef(b.ID)
		require.NoError(t, err)
		assert.Equal(t, b.ID, bare.ID)
	}
}

// checkUnknown checks that a call for an unknown id is fault.KindNotFound.
func checkUnknown(call string) func(t T, s *Subject) {
	return func(t T, s *Subject) {
		err := s.allCalls(unknownID)[call](s.callContext(t))
		require.Error(t, err, "%s of an unknown id is no success", call)
		assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "gone needs proof that it existed: %v", err)
	}
}

func (s *Subject) controlCalls(id string) calls {
	all := calls{}
	addCall(s, all, "exit", func(ctx context.Context, r providers.ExitReader) error { _, err := r.Exit(ctx, id); return err })
	addCall(s, all, "admit", func(ctx context.Context, a providers.Admitter) error { return a.Admit(ctx, 1) })
	addCall(s, all, "quota", func(ctx context.Context, r providers.QuotaReader) error { _, err := r.Quota(ctx); return err })
	addCall(s, all, "activity", func(ctx context.Context, r providers.ActivityReader) error { _, err := r.Activity(ctx, id); return err })
	addCall(s, all, "records", func(ctx context.Context, r providers.Recorder) error { _, err := readRecords(ctx, r); return err })
	return all
}

func readRecords(ctx context.Context, r providers.Recorder) ([]providers.Record, error) {
	var all []providers.Record
	var errs []error
	for row, err := range r.Records(ctx) {
		if errs = append(errs, err); err == nil {
			all = append(all, row)
		}
	}
	return all, errors.Join(errs...)
}

func checkExitCode(t T, s *Subject) {
	exit := s.exitOfScript(t, "exit 3")
	if exit == nil {
		return
	}
	require.NotNil(t, exit.Code, "a program that exits has a code")
	assert.Equal(t, 3, *exit.Code)
	assert.NotEqual(t, sandbox.ClassOK, exit.Class, "a failure is classified as one")
}

func checkExitOwnCodes(t T, s *Subject) {
	for _, code := range ownCodes() {
		if exit := s.exitOfScript(t, "exit "+strconv.Itoa(code)); exit != nil {
			checkOwnExit(t, exit, code)
		}
	}
}

// exitOfScript runs a program that fails. Where the sandbox disappears with its program, there
// is no exit to read, and it gives nil.
func (s *Subject) exitOfScript(t T, script string) *sandbox.Exit {
	r := requireAbility[providers.ExitReader](t, s)
	launcher, ok := providers.As[providers.Launcher](s.P)
	if !ok {
		t.Skipf("%s cannot create", s.P.Type())
	}
	made, err := launcher.Create(s.callContext(t), sandbox.Spec{Command: []string{"sh", "-c", script}})
	require.NoError(t, err, "create")
	s.deleteAfter(t, made.ID)
	var exit *sandbox.Exit
	require.True(t, s.c.Eventually(s.c.Limit, func() bool {
		exit, err = r.Exit(s.callContext(t), made.ID)
		return exit != nil || isNotFound(err)
	}), "no exit comes, but %v", err)
	if _, gone := s.P.Get(s.callContext(t), made.ID); isNotFound(gone) {
		return nil
	}
	require.NoError(t, err)
	return exit
}

func checkExitRunning(t T, s *Subject) {
	r := requireAbility[providers.ExitReader](t, s)
	id := s.startSandbox(t, sandbox.Spec{})
	exit, err := r.Exit(s.callContext(t), id)
	require.NoError(t, err)
	assert.Nil(t, exit, "what runs has no exit")
}

func checkExitUnknown(t T, s *Subject) {
	exit, err := requireAbility[providers.ExitReader](t, s).Exit(s.callContext(t), unknownID)
	assert.Nil(t, exit)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
}

// checkAdmission asks for sizes that fit everywhere and one that may fit nowhere. Every refusal is of
// one kind.
func checkAdmission(t T, s *Subject) {
	a := requireAbility[providers.Admitter](t, s)
	for _, bytes := range []int64{0, 1 << 20, 1 << 50} {
		err := a.Admit(s.callContext(t), bytes)
		if err == nil {
			continue
		}
		var f *fault.Error
		require.ErrorAs(t, err, &f)
		assert.Equal(t, fault.KindRefused, f.Kind, "%d bytes: %v", bytes, err)
		assert.NotContains(t, err.Error(), "\n", "a reason is one line")
	}
}

// checkQuota starts a sandbox first: an account may not be known before.
func checkQuota(t T, s *Subject) {
	r := requireAbility[providers.QuotaReader](t, s)
	s.startSandbox(t, sandbox.Spec{})
	quotas, err := r.Quota(s.callContext(t))
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

func checkRecords(t T, s *Subject) {
	r := requireAbility[providers.Recorder](t, s)
	id := s.startSandbox(t, sandbox.Spec{TaskID: "t-7f3a"})
	rows, err := readRecords(s.callContext(t), r)
	require.NoError(t, err)
	for _, row := range rows {
		assert.True(t, row.SandboxID != "" || row.TaskID != "", "a record of nothing: %+v", row)
		assert.Contains(t, []sandbox.Verdict{sandbox.True, sandbox.False, sandbox.Unknown}, row.Live)
		if row.SandboxID == id {
			assert.NotEqual(t, sandbox.False, row.Live, "it runs, and its record says that it should not")
			assert.Contains(t, []string{"", "t-7f3a"}, row.TaskID, "a record of another task")
		}
	}
	assert.True(t, s.returnsInTime(func() {
		for _, err := range r.Records(s.callContext(t)) {
			_ = err
			break
		}
	}), "records go on after their consumer has stopped")
}

func checkActivityTimes(t T, s *Subject) {
	r := requireAbility[providers.ActivityReader](t, s)
	id := s.startSandbox(t, sandbox.Spec{})
	a, err := r.Activity(s.callContext(t), id)
	require.NoError(t, err)
	late := time.Now().Add(time.Minute)
	for name, at := range map[string]time.Time{"work": a.LastWorkAt, "heartbeat": a.LastHeartbeatAt} {
		assert.False(t, at.After(late), "the last %s lies in the future: %s", name, at)
	}
	_, err = r.Activity(s.callContext(t), unknownID)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
}

// checkReasons checks that WhyNot is half a sentence, and only for missing abilities.
func checkReasons(t T, s *Subject) {
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
