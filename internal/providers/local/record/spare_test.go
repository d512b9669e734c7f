//go:build unix

package record

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/local/identity"
)

// TestARequestSurvivesAFullDisk: the lock file's own block has space for it, beside the
// holder's signature and the expiry.
func TestARequestSurvivesAFullDisk(t *testing.T) {
	t.Parallel()
	s := Store{Root: t.TempDir()}
	lock, err := s.Prepare("abc")
	require.NoError(t, err)
	defer lock.Close()
	self, err := identity.Self()
	require.NoError(t, err)
	require.NoError(t, SignLock(lock, self))
	due := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	require.NoError(t, s.SetDue("abc", due))
	stop, err := s.Stop("abc")
	require.NoError(t, err)
	assert.Nil(t, stop)

	raw, err := json.Marshal(Stop{By: "sbx terminate (ann)", GraceSeconds: 5})
	require.NoError(t, err)
	require.NoError(t, s.spareStop("abc", raw))
	stop, err = s.Stop("abc")
	require.NoError(t, err)
	require.NotNil(t, stop)
	assert.Equal(t, "sbx terminate (ann)", stop.By)
	holder, signed := s.Holder("abc")
	assert.True(t, signed)
	assert.Equal(t, self, holder)
	at, unfinished := s.Due("abc")
	assert.True(t, unfinished)
	assert.True(t, at.Equal(due), at)
	require.Error(t, s.spareStop("nosuch", raw))
	require.Error(t, s.spareStop("abc", make([]byte, spareBytes+1)))
}
