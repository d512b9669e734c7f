package cli_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/cli"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// TestLifeSignsSayWhatTheRoomsDo holds the table of docs/PROVIDERS.md against the
// program: a type has a row for each ability that judges life, for no other, and its
// log misses nothing exactly where it says that it captures a stranger's output.
func TestLifeSignsSayWhatTheRoomsDo(t *testing.T) {
	t.Parallel()
	for _, kind := range cli.Types() {
		p := open(t, kind)
		for _, ability := range providers.Abilities() {
			judges := slices.Contains([]string{"logs", "usage", "history", "processes", "probe", "activity"}, ability.Name)
			i := slices.IndexFunc(kind.LifeSigns, func(s providers.LifeSign) bool { return s.Ability == ability.Name })
			if !judges {
				assert.True(t, i < 0 || ability.Name == "events", "%s: %s judges no life", kind.Name, ability.Name)
				continue
			}
			assert.False(t, i >= 0 && !ability.Has(p), "%s tells of %s, which it lacks", kind.Name, ability.Name)
			assert.False(t, i < 0 && ability.Has(p) && ability.Name != "probe", "%s says nothing of %s", kind.Name, ability.Name)
			if reader, ok := providers.As[providers.LogReader](p); ok && ability.Name == "logs" && i >= 0 {
				complete := reader.CapturesOutput(sandbox.Sandbox{ID: "foreign"})
				assert.Equal(t, complete, kind.LifeSigns[i].Misses == "", "%s: its log", kind.Name)
			}
		}
	}
}
