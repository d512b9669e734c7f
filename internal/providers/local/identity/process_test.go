package identity

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSameAs(t *testing.T) {
	t.Parallel()
	recorded := Process{BootID: "a", PID: 7, StartTicks: 100, PidfdInode: 9}
	for name, tc := range map[string]struct {
		change func(*Process)
		want   error
	}{
		"the same":                       {func(*Process) {}, nil},
		"another boot":                   {func(p *Process) { p.BootID = "b" }, ErrDead},
		"another number":                 {func(p *Process) { p.PID = 8 }, ErrForeign},
		"reused within one tick":         {func(p *Process) { p.PidfdInode = 10 }, ErrForeign},
		"inode decides, not ticks":       {func(p *Process) { p.StartTicks = 0 }, nil},
		"no inode, same start":           {func(p *Process) { p.PidfdInode = 0 }, nil},
		"no inode, another start":        {func(p *Process) { p.PidfdInode, p.StartTicks = 0, 101 }, ErrForeign},
		"another boot and another inode": {func(p *Process) { p.BootID, p.PidfdInode = "b", 1 }, ErrDead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := recorded
			tc.change(&now)
			require.ErrorIs(t, recorded.sameAs(now), tc.want)
			require.ErrorIs(t, now.sameAs(recorded), tc.want)
		})
	}
}

func TestProcessIsStoredInSnakeCase(t *testing.T) {
	t.Parallel()
	p := Process{BootID: "b", PID: 1, StartTicks: 2, PidfdInode: 3}
	text, err := json.Marshal(p)
	require.NoError(t, err)
	assert.JSONEq(t, `{"boot_id":"b","pid":1,"start_ticks":2,"pidfd_inode":3}`, string(text))
	var back Process
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, p, back)
}

func TestNoNumberIsNobody(t *testing.T) {
	t.Parallel()
	// 0 and negative numbers mean groups and everybody to kill(2).
	for _, pid := range []int{0, -1, -1 << 31} {
		_, err := Of(pid)
		require.Error(t, err)
		_, err = Open(Process{PID: pid})
		require.Error(t, err)
		alive, err := Process{PID: pid}.Alive()
		require.Error(t, err)
		assert.False(t, alive)
	}
}

func TestAgeIsCountedFromTheStart(t *testing.T) {
	t.Parallel()
	self, err := Self()
	require.NoError(t, err)
	age, known := self.Age()
	if !known {
		t.Skip("this system does not count from its boot")
	}
	assert.Positive(t, age)
	assert.Less(t, age, time.Hour)
	older := self
	older.StartTicks -= min(older.StartTicks, 100*TicksPerSecond)
	olderAge, _ := older.Age()
	assert.Greater(t, olderAge, age)
	elsewhere := self
	elsewhere.BootID = "another"
	_, known = elsewhere.Age()
	assert.False(t, known)
}
