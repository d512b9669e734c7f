package omoios_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/omoiostest"
	"sbx/internal/testkit/wiretest"
)

const (
	taskID    = "886da5fe-2f1b-4c56-9c2e-6f0a9fee0001"
	daytonaID = "0b6f2f4e-5f0e-4d57-9d0e-3a1d2c4b5a69"
)

// atDaytona is the sandbox as Daytona has it: an id of its own, no name, a label.
func atDaytona(task string) sandbox.Sandbox {
	s := sandbox.Sandbox{Provider: "daytona", ID: daytonaID}
	if task != "" {
		s.Labels = map[string]string{"task_id": task, "project": "demo"}
	}
	return s
}

func TestASandboxIsLinkedThroughItsTask(t *testing.T) {
	t.Parallel()
	beat := omoiostest.Event{Sandbox: box, Type: "agent.heartbeat"}
	row := omoiostest.Task{ID: taskID, Status: "running", Sandbox: box, Created: time.Now()}
	other := omoiostest.Task{ID: "886da5fe-9999-4c56-9c2e-6f0a9fee0001", Status: "running", Sandbox: "omoios-886da5fe-ffffff", Created: time.Now()}
	for name, tc := range map[string]struct {
		s     sandbox.Sandbox
		token string
		set   func(f *omoiostest.Fake)
		want  string
		kind  fault.Kind
	}{
		"by the list of tasks":      {atDaytona(taskID), omoiostest.Token, func(f *omoiostest.Fake) { f.AddTask(row) }, box, fault.KindNone},
		"by its heartbeat":          {atDaytona(taskID), "", func(f *omoiostest.Fake) { f.AddTask(row); f.Add(beat) }, box, fault.KindNone},
		"by its name":               {sandbox.Sandbox{ID: daytonaID, Name: box}, "", func(*omoiostest.Fake) {}, box, fault.KindNone},
		"none of OmoiOS's":          {atDaytona(""), omoiostest.Token, func(f *omoiostest.Fake) { f.AddTask(row) }, "", fault.KindNotFound},
		"a task that is not shown":  {atDaytona(taskID), omoiostest.Token, func(f *omoiostest.Fake) { f.AddTask(other) }, "", fault.KindUnavailable},
		"no heartbeat and no token": {atDaytona(taskID), "", func(f *omoiostest.Fake) { f.AddTask(row) }, "", fault.KindUnavailable},
		"a task that begins alike": {atDaytona(taskID), "", func(f *omoiostest.Fake) {
			f.AddTask(other)
			f.Add(omoiostest.Event{Sandbox: other.Sandbox, Type: "agent.heartbeat"})
		}, "", fault.KindUnavailable},
		"a label that is no id":          {atDaytona("x"), "", func(f *omoiostest.Fake) { f.Add(beat) }, "", fault.KindUnavailable},
		"a list of tasks that fails":     {atDaytona(taskID), omoiostest.Token, func(f *omoiostest.Fake) { f.Break(wiretest.Fault{Route: tasks, Status: 500}) }, "", fault.KindUnavailable},
		"a wrong token":                  {atDaytona(taskID), "wrong-token-1", func(f *omoiostest.Fake) { f.AddTask(row) }, "", fault.KindAuth},
		"a wrong token, and a heartbeat": {atDaytona(taskID), "wrong-token-1", func(f *omoiostest.Fake) { f.AddTask(row); f.Add(beat) }, box, fault.KindNone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := omoiostest.New(t, omoiostest.Options{})
			tc.set(f)
			id, err := open(t, f, tc.token).Link(t.Context(), tc.s)
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			assert.Equal(t, tc.want, id)
		})
	}
}

// TestAFleetIsLinkedByOneReading: links of many sandboxes read the tasks once.
func TestAFleetIsLinkedByOneReading(t *testing.T) {
	t.Parallel()
	f := omoiostest.New(t, omoiostest.Options{})
	f.AddTask(omoiostest.Task{ID: taskID, Status: "running", Sandbox: box, Created: time.Now()})
	c := open(t, f, omoiostest.Token)
	for range 20 {
		_, err := c.Link(t.Context(), atDaytona(taskID))
		require.NoError(t, err)
	}
	assert.Len(t, f.Calls(tasks), 1)
}

// TestTwoSandboxesOfOneTaskAreNotToldApart: after a retry both have its label.
func TestTwoSandboxesOfOneTaskAreNotToldApart(t *testing.T) {
	t.Parallel()
	f := omoiostest.New(t, omoiostest.Options{})
	f.AddTask(omoiostest.Task{ID: taskID, Status: "running", Sandbox: box, Created: time.Now()})
	f.Add(omoiostest.Event{Sandbox: box, Type: "agent.heartbeat"}, omoiostest.Event{Sandbox: "omoios-886da5fe-ffffff", Type: "agent.heartbeat"})
	_, err := open(t, f, omoiostest.Token).Link(t.Context(), atDaytona(taskID))
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
}
