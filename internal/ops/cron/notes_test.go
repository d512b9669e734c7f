package cron

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/cron"
	"sbx/internal/ops"
	"sbx/internal/process"
)

func TestNextForALayerNamesWhatIsUnowned(t *testing.T) {
	t.Parallel()
	env := &ops.Env{Process: process.Process{Args: []string{"sbx"}}}
	assert.Equal(t, []string{"sbx cron check", "sbx cleanup runs", "sbx ls --stuck"}, NextForLayer(env, cron.Status{Unowned: map[string]int{"prod": 1}}))
	assert.Equal(t, []string{"sbx cron check", "sbx cleanup runs"}, NextForLayer(env, cron.Status{}))
}
