package record_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/local/record"
	"sbx/internal/sandbox"
)

func TestCloseKeepsWhatTheProgramDid(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	exit := func(code int) *record.Exit { return &record.Exit{Code: &code, At: &at, OOMKills: new(int64(1))} }
	stop := &record.Stop{By: "alice"}
	for name, tc := range map[string]struct {
		rec   record.Record
		end   record.Exit
		later bool // the end is not the program's
		want  sandbox.State
	}{
		"exit 0, then stopped":      {record.Record{KeepAfterExit: true, Exit: exit(0)}, record.Exit{Stop: stop}, true, sandbox.StateTerminated},
		"exit 3, then stopped":      {record.Record{KeepAfterExit: true, Exit: exit(3)}, record.Exit{Stop: stop}, true, sandbox.StateTerminated},
		"exit 0, then out of time":  {record.Record{KeepAfterExit: true, Exit: exit(0)}, record.Exit{TimedOut: true}, true, sandbox.StateTerminated},
		"exit 3, then out of time":  {record.Record{KeepAfterExit: true, Exit: exit(3)}, record.Exit{TimedOut: true}, true, sandbox.StateFailed},
		"exit 0, then lost":         {record.Record{KeepAfterExit: true, Exit: exit(0)}, record.Exit{SupervisorLost: true}, true, sandbox.StateTerminated},
		"stopped while it ran":      {record.Record{KeepAfterExit: true}, record.Exit{Signal: 15, Stop: stop}, false, sandbox.StateTerminated},
		"lost while it ran":         {record.Record{KeepAfterExit: true}, record.Exit{SupervisorLost: true}, false, sandbox.StateFailed},
		"seen, but not as its own":  {record.Record{KeepAfterExit: true, Exit: &record.Exit{Signal: 9}}, record.Exit{Signal: 9, TimedOut: true}, false, sandbox.StateFailed},
		"no linger, then anything":  {record.Record{Exit: exit(0)}, record.Exit{Signal: 9, TimedOut: true}, false, sandbox.StateFailed},
		"out of time, with code 0":  {record.Record{}, record.Exit{Code: new(0), TimedOut: true}, false, sandbox.StateFailed},
		"the watchdog, with code 0": {record.Record{}, record.Exit{Code: new(0), WatchdogBytes: 1}, false, sandbox.StateFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tc.rec
			r.State = sandbox.StateRunning
			assert.Equal(t, tc.later, r.ProgramEnded())
			tc.end.OOMKills = new(int64(2))
			r.Close(tc.end)
			assert.Equal(t, tc.want, r.EndState())
			if tc.later {
				assert.Equal(t, tc.rec.Exit, r.Exit)
				require.NotNil(t, r.End)
				assert.Equal(t, tc.end.Stop, r.End.Stop)
				assert.Equal(t, int64(2), *r.End.OOMKills)
			} else {
				assert.Equal(t, tc.end, *r.Exit)
				assert.Nil(t, r.End)
			}
		})
	}
}

// A lingering sandbox has the same record format, so that an older sbx can read, end and
// rewrite it.
func TestLingeringIsAnAddition(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 1, record.Schema)
	var old struct {
		Schema int            `json:"schema"`
		State  sandbox.State  `json:"state"`
		Exit   map[string]any `json:"exit"`
	}
	raw, err := json.Marshal(record.Record{
		Schema: record.Schema, KeepAfterExit: true, State: sandbox.StateTerminated, Exit: &record.Exit{Code: new(3)}, End: &record.End{TimedOut: true},
	})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &old))
	assert.Equal(t, 1, old.Schema)
	assert.Equal(t, map[string]any{"code": 3.0}, old.Exit)
	plain, err := json.Marshal(record.Record{Schema: record.Schema})
	require.NoError(t, err)
	assert.NotContains(t, string(plain), "linger")
	assert.NotContains(t, string(plain), `"end"`)
}
