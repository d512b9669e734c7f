//go:build unix

package spawn

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/httpx"
	"sbx/internal/ops"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/providers/e2b"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/opstest"
	"sbx/internal/testkit/wiretest"
)

// silent is an observer that keeps nothing.
type silent struct{}

func (silent) Note(string)                  {}
func (silent) Warn(string)                  {}
func (silent) Redact(text string) string    { return text }
func (silent) Progress(string) ops.Progress { return silentProgress{} }
func (silent) Item(any)                     {}

type silentProgress struct{}

func (silentProgress) Update(string) {}
func (silentProgress) Done()         {}

// onE2B prepares a test of a profile `e2b` at a fake, whose programs are real processes.
func onE2B(t *testing.T) (*Test, *e2btest.Fake) {
	t.Helper()
	f := e2btest.New(t, e2btest.Options{})
	kind := e2b.Type()
	opened, err := kind.Open(t.Context(), providers.Profile{Name: "e2b", Type: kind.Name, Settings: e2btest.Settings("http://e2b")},
		providers.Deps{Now: time.Now, Net: httpx.Net{Dial: f.Dial}})
	require.NoError(t, err)
	p := process.Process{Args: []string{"sbx"}, Home: t.TempDir(), Environ: []string{"E2B_API_KEY=" + e2btest.Key, "E2B_API_URL=http://e2b"}, Now: time.Now}
	disk := store.Memory(time.Now)
	env := opstest.NewEnv(opstest.Parts{
		Process: p, Types: []providers.Type{kind}, Runs: filepath.Join(p.Home, "runs"), Endings: t.TempDir(),
		Config: func() (*config.Config, error) {
			return config.Load(context.WithoutCancel(t.Context()), config.Input{Process: p, Types: []providers.Type{kind}, Flags: map[string]string{"provider": "e2b"}})
		},
		Members: func() []fleet.Member {
			return []fleet.Member{{Provider: opened, Metadata: sandbox.DefaultMetadata(), Timeout: 20 * time.Second}}
		},
		Store: func() store.Store { return disk },
	})
	test, err := Prepare(t.Context(), env, "e2b", "alice")
	require.NoError(t, err)
	return test, f
}

func byStep(rows []ops.Check) map[string]ops.Check {
	all := map[string]ops.Check{}
	for _, row := range rows {
		all[row.Check.Check] = row
	}
	return all
}

func TestALifeOnTheWire(t *testing.T) {
	t.Parallel()
	test, f := onE2B(t)
	rows := test.Run(t.Context(), silent{})
	require.Len(t, rows, 5)
	for _, row := range rows {
		assert.Equal(t, sandbox.True, row.Verdict, "%s: %s", row.Check.Check, row.Message)
	}
	assert.Contains(t, byStep(rows)[StepEnd].Message, "requested and accepted")
	assert.Zero(t, f.Running())
	created := f.Calls("POST /sandboxes")
	require.Len(t, created, 1)
	assert.Contains(t, string(created[0].Body), `"timeout":300`)
	assert.Contains(t, string(created[0].Body), `"sbx/owner":"alice"`)
}

func TestCreateRefusedOnTheWire(t *testing.T) {
	t.Parallel()
	test, f := onE2B(t)
	f.Break(wiretest.Fault{Route: "POST /sandboxes", Status: http.StatusForbidden, Body: `{"code":403,"message":"no place"}`})
	rows := byStep(test.Run(t.Context(), silent{}))
	assert.Equal(t, ops.CheckProblem, rows[StepCreate].Status())
	assert.Contains(t, rows[StepCreate].Message, "no place")
	assert.Equal(t, ops.CheckNote, rows[StepRun].Status())
	assert.Len(t, f.Calls("POST /sandboxes"), 1, "a refused create is not repeated")
	assert.Empty(t, f.Calls("DELETE /sandboxes/{id}"))
}

func TestExecHangsOnTheWire(t *testing.T) {
	t.Parallel()
	test, f := onE2B(t)
	test.limits.run, test.limits.output = 200*time.Millisecond, 200*time.Millisecond                       // the log is read by a command, too
	f.Break(wiretest.Fault{Route: "POST /process.Process/Start", Trouble: wiretest.TroubleHang, After: 1}) // the first starts the program of the create
	rows := byStep(test.Run(t.Context(), silent{}))
	assert.Equal(t, ops.CheckOK, rows[StepCreate].Status(), rows[StepCreate].Message)
	assert.Equal(t, ops.CheckProblem, rows[StepRun].Status())
	assert.Equal(t, ops.CheckOK, rows[StepVerify].Status(), rows[StepVerify].Message)
	assert.Zero(t, f.Running())
}

func TestEndNotProvedOnTheWire(t *testing.T) {
	t.Parallel()
	test, f := onE2B(t)
	test.limits.request, test.limits.end = 300*time.Millisecond, time.Second
	f.Change(func(o *e2btest.Options) { o.KeepsAlive = true })
	rows := byStep(test.Run(t.Context(), silent{}))
	assert.Equal(t, ops.CheckProblem, rows[StepVerify].Status())
	assert.Contains(t, rows[StepVerify].Hint, "sbx terminate e2b/")
	assert.Equal(t, fault.KindFound, fault.KindOf(rows[StepVerify].Err()))
	assert.Equal(t, 1, f.Running())
}

// TestTheRowsOfAnEndSayWhatWasSent: that an end is proved does not say that a request was accepted, and a limit is named.
func TestTheRowsOfAnEndSayWhatWasSent(t *testing.T) {
	t.Parallel()
	test, f := onE2B(t)
	test.limits.request, test.limits.end = 300*time.Millisecond, time.Second
	f.Break(wiretest.Fault{Route: "DELETE /sandboxes/{id}", Trouble: wiretest.TroubleHang})
	rows := byStep(test.Run(t.Context(), silent{}))
	assert.Equal(t, sandbox.False, rows[StepEnd].Verdict)
	assert.Contains(t, rows[StepEnd].Message, "was requested and not accepted: ")
	assert.NotContains(t, rows[StepEnd].Message+rows[StepVerify].Message, "context deadline exceeded")

	for say, e := range map[string]sandbox.Ending{
		"no end was requested: it had ended before": {Outcome: sandbox.OutcomeAlreadyGone, Reason: "it had ended before"},
		"nothing was sent to end ":                  {Outcome: sandbox.OutcomeFailed, Reason: "connection refused"},
	} {
		r := &run{Test: test}
		r.addEnding(e, time.Now())
		assert.Contains(t, r.rows[0].Message, say)
	}
}
