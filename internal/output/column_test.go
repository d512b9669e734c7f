package output

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestNames(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"ref", "state", "created_at", "age_seconds", "labels", "memory_mb", "cpu", "stuck", "note"}, Names(boxColumns()))
}

func TestChoose(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		names []string
		level Level
		want  []string
		hint  string
	}{
		"default":         {nil, Default, []string{"ref", "state", "created_at", "stuck", "note"}, ""},
		"wide":            {nil, Wide, []string{"ref", "state", "created_at", "age_seconds", "labels", "stuck", "note"}, ""},
		"named, in order": {[]string{"cpu", "ref"}, Default, []string{"cpu", "ref"}, ""},
		"near miss":       {[]string{"sate"}, Default, nil, "did you mean state? columns: ref, state"},
		"far miss":        {[]string{"quux"}, Default, nil, "columns: ref, state"},
		"empty word":      {[]string{""}, Default, nil, "columns: ref, state"},
		"capitals":        {[]string{"REF"}, Default, nil, "columns: ref, state"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chosen, err := chooseColumns(erasedColumns(boxColumns()), tc.names, tc.level)
			if tc.hint == "" {
				require.NoError(t, err)
				assert.Equal(t, tc.want, namesOf(chosen))
				return
			}
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
			assert.Contains(t, fault.HintOf(err), tc.hint)
		})
	}
}

func TestCheckColumns(t *testing.T) {
	t.Parallel()
	require.NoError(t, CheckColumns(boxColumns(), nil))
	require.NoError(t, CheckColumns(boxColumns(), []string{"cpu"}))
	require.ErrorContains(t, CheckColumns(boxColumns(), []string{"ref", "x\x1b"}), `unknown column "x\\x1b"`)
}

func TestHeading(t *testing.T) {
	t.Parallel()
	erased := erasedColumns([]Column[box]{{Name: "age_seconds", Head: "AGE"}, {Name: "state"}})
	assert.Equal(t, "AGE", erased[0].title)
	assert.Equal(t, "STATE", erased[1].title)
}
