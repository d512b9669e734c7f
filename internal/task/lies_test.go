package task_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

// TestWhatALostCreateMadeCounts: the answer to a create is lost, its sandbox is found afterwards, and its program may
// have run: the only attempt is used up.
func TestWhatALostCreateMadeCounts(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		s.hurt("cloud", "create", "unanswered", 0, time.Minute)
		spec := plain()
		spec.Attempts = 1
		_, over := s.begin("t-1", spec, works(20*time.Second, sandbox.ClassOK))
		require.NoError(t, <-over)
		assert.Equal(t, []sandbox.Class{sandbox.ClassInfra}, classes(s.now(t, "t-1")))
		assert.Len(t, s.boxes, 1)
	})
}

// TestAStreamThatHasEndedIsNoSilence: the stream of a program that runs and talks ends, and can or cannot be opened again.
func TestAStreamThatHasEndedIsNoSilence(t *testing.T) {
	t.Parallel()
	for _, unreadable := range []bool{false, true} {
		inWorld(t, func(t *testing.T, s *sim) {
			t.Helper()
			s.lie = lie{source: "inside", says: "cut", from: 10 * time.Second, until: forever, once: true}
			if unreadable {
				s.hurt("cloud", "logs", "away", 10*time.Second, forever)
			}
			_, over := s.begin("t-1", plain(), works(3*time.Minute, sandbox.ClassOK))
			require.NoError(t, <-over)
			assert.Equal(t, []sandbox.Class{sandbox.ClassOK}, classes(s.now(t, "t-1")), "unreadable: %t", unreadable)
		})
	}
}

// TestOneReadLeavesNoRecord: what has stopped by itself is deleted, also while its record by id is not found.
func TestOneReadLeavesNoRecord(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		s.leaves = true
		s.lie = lie{source: "record", says: "404", from: 5 * time.Second, until: 40 * time.Second}
		spec := plain()
		spec.Attempts = 1
		_, over := s.begin("t-1", spec, program{length: 10 * time.Second, exit: sandbox.ClassGone})
		err := <-over
		s.rest(2 * time.Minute)
		if err != nil {
			s.sweep(t, "h1")
		}
		assert.True(t, s.now(t, "t-1").State.Final())
		assert.True(t, s.boxes[0].deleted, "its record is left")
	})
}

// TestACopyOfWhatIsKeptIsEnded: a task that keeps its sandbox keeps the one that it knows.
func TestACopyOfWhatIsKeptIsEnded(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		s.copies = true
		spec := plain()
		spec.KeepAlive = time.Hour
		_, over := s.begin("t-1", spec, works(20*time.Second, sandbox.ClassOK))
		require.NoError(t, <-over)
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Len(t, s.boxes, 2)
		assert.True(t, s.boxes[0].alive(time.Now()))
		assert.False(t, s.boxes[1].alive(time.Now()), "it is left")
	})
}
