package look

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/config"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/process"
	"sbx/internal/sandbox"
)

func TestTheAnswerSaysHowManyOfTheListedHaveEnded(t *testing.T) {
	t.Parallel()
	judged := []fleet.Judged{{}, {}}
	judged[0].Sandbox.State, judged[1].Sandbox.State = sandbox.StateRunning, sandbox.StateTerminated
	d := &diagnosis{env: &ops.Env{Process: process.Process{Now: time.Now}, Config: func() (*config.Config, error) { return nil, errors.New("none") }}, result: &DiagnoseResult{}}
	got, err := d.answerStuck(judged, nil)
	require.NoError(t, err)
	assert.Contains(t, got[0].text, " of 2 (1 of them have ended)")
	got, err = d.answerStuck(judged[:1], nil)
	require.NoError(t, err)
	assert.NotContains(t, got[0].text, "ended")
}
