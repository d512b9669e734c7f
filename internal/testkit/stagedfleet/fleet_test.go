package stagedfleet_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/stagedfleet"
)

func TestTheStageIsTheSameInEveryRun(t *testing.T) {
	t.Parallel()
	one := stagedfleet.New(t, stagedfleet.Options{Idle: true})
	two := stagedfleet.New(t, stagedfleet.Options{Idle: true})
	require.True(t, slices.Equal(one.Members, two.Members))
	require.Len(t, one.Refs(func(stagedfleet.Role) bool { return true }), 300)
	require.Len(t, one.Refs(stagedfleet.Role.Stuck), 26)
	require.Len(t, one.Refs(stagedfleet.Role.Unjudged), 10)
}
