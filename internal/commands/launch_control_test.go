package commands

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops/launch"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// plane is a control plane that keeps what it was told, as it would read it.
type plane struct {
	refuses error
	events  bool // it takes those of OmoiOS

	mu   sync.Mutex
	told []map[string]any
}

func (p *plane) hear(body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var read map[string]any
	if err := json.Unmarshal(raw, &read); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, read)
	return p.refuses
}

func (p *plane) Ended(_ context.Context, _ string, report any) error { return p.hear(report) }
func (p *plane) Beat(_ context.Context, beat any) error              { return p.hear(beat) }
func (p *plane) TakesEvents() bool                                   { return p.events }
func (p *plane) Close()                                              {}

// overseen is the examples' bench with a control plane.
func overseen(t *testing.T) (*bench, *plane) {
	t.Helper()
	b, _ := examples(t)
	p := &plane{}
	b.control, b.env = p, []string{"CALLBACK_URL=http://127.0.0.1:1/done"}
	return b, p
}

func TestAControlPlaneHearsOfTheEnd(t *testing.T) {
	t.Parallel()
	b, p := overseen(t)
	r := b.run(t, "run --key k-1 -o json -- true")
	require.Equal(t, 0, r.code, r.stderr)
	require.Len(t, p.told, 1)
	got := p.told[0]
	delete(got, "at")
	attempts, _ := got["attempts"].([]any)
	require.Len(t, attempts, 1)
	one, _ := attempts[0].(map[string]any)
	assert.Equal(t, []any{1.0, "ok", 0.0}, []any{one["n"], one["class"], one["exit_code"]})
	delete(got, "attempts")
	assert.Equal(t, map[string]any{
		"schema": "sbx.callback/v1", "event": "completed", "task": r.item(t)["task"], "key": "k-1", "state": "completed",
		"exit_code": 0.0, "publish": nil, "terminated_verified": true,
	}, got)
}

// TestAControlPlaneThatRefuses: how the task ended stays as it is.
func TestAControlPlaneThatRefuses(t *testing.T) {
	t.Parallel()
	b, p := overseen(t)
	p.refuses = fault.New(fault.KindUnavailable, "callback: no answer")
	r := b.run(t, "run -- true")
	assert.Equal(t, 0, r.code)
	assert.Len(t, p.told, 1)
	assert.Contains(t, r.stderr, "callback: no answer")
}

func TestNobodyIsToldWithoutACallback(t *testing.T) {
	t.Parallel()
	b, p := overseen(t)
	b.env = nil
	assert.Equal(t, 0, b.run(t, "run -- true").code)
	assert.Empty(t, p.told)
}

func TestAControlPlaneHearsThatATaskGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBatchBench(t, "local")
		p := &plane{refuses: fault.New(fault.KindUnavailable, "callback: no answer")}
		b.control, b.env = p, []string{"CALLBACK_URL=http://127.0.0.1:1/done"}
		r := b.runArgs(t, "run", "--inactivity", "200s", "--", "sh", "-c", "sleep 70; exit 3")
		require.Equal(t, 3, r.code, r.stderr)
		var events []any
		for _, one := range p.told {
			events = append(events, one["event"])
		}
		assert.Equal(t, []any{"heartbeat", "heartbeat", "completed"}, events)
		assert.Equal(t, "running", p.told[0]["state"])
		assert.Equal(t, 2, strings.Count(r.stderr, "callback: no answer"), "the first lost beat, and the lost end: %s", r.stderr)
	})
}

// TestATaskIsToldInEventsWhereTheControlPlaneTakesThem: as the worker of OmoiOS tells them, one for the beginning, each
// beat and the end.
func TestATaskIsToldInEventsWhereTheControlPlaneTakesThem(t *testing.T) {
	t.Parallel()
	for line, last := range map[string]string{"sleep 40": "agent.completed", "sleep 40; exit 3": "agent.failed"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBatchBench(t, "local")
			p := &plane{events: true}
			b.control, b.env = p, []string{"CALLBACK_URL=http://127.0.0.1:1/api/v1/sandboxes/s-1/events"}
			b.runArgs(t, "run", "--inactivity", "200s", "--", "sh", "-c", line)
			var events []any
			for _, one := range p.told {
				events = append(events, one["event_type"])
				assert.Equal(t, "worker", one["source"])
			}
			assert.Equal(t, []any{"agent.started", "agent.heartbeat", last}, events)
			data, _ := p.told[1]["event_data"].(map[string]any)
			assert.Equal(t, "sbx.callback/v1", data["schema"])
		})
	}
}

func TestWhatAControlPlaneSees(t *testing.T) {
	t.Parallel()
	one := failedTask("t-leak00000001", noon)
	one.Spec.EnvNames = []string{"TOKEN"}
	one.Attempts[0].Exit.Evidence = []sandbox.Evidence{{What: "last line", Value: "password"}}
	one.Publish = task.Publish{State: task.PublishRefused, Target: "origin=fix"}
	got := launch.CallbackOf(one, noon)
	assert.Equal(t, 125, *got.ExitCode, "what was refused is not published")
	assert.Equal(t, &launch.CallbackPublish{State: task.PublishRefused, Target: "origin=fix"}, got.Publish)
	raw, err := json.Marshal(got)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "password")
	assert.NotContains(t, string(raw), "TOKEN")
	one.State = task.Running
	got = launch.CallbackOf(one, noon)
	assert.Equal(t, "heartbeat", got.Event)
	assert.Nil(t, got.ExitCode)
}
