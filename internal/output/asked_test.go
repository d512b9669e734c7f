package output

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestATableThatIsAskedForIsLaidOutInAPipe, in the width of COLUMNS, else in any; without colour unless that is
// asked for. The default stays tab-separated, whatever the environment says.
func TestATableThatIsAskedForIsLaidOutInAPipe(t *testing.T) {
	t.Parallel()
	type row struct{ ref, note string }
	columns := []Column[row]{
		{Name: "ref", Value: func(r row) any { return r.ref }},
		{Name: "note", Value: func(r row) any { return r.note }, Tone: func(row) Tone { return Bad }},
	}
	const text = "the main process waits on a connection"
	for name, tc := range map[string]struct {
		format string
		env    []string
		want   string
	}{
		"asked":             {"-o table", nil, "REF     NOTE\nprod/1  " + text + "\n"},
		"asked, in a width": {"-o table", []string{"COLUMNS=30"}, "REF     NOTE\nprod/1  the main process wait…\n"},
		"no width":          {"-o table", []string{"COLUMNS=-1"}, "REF     NOTE\nprod/1  " + text + "\n"},
		"with colour":       {"-o table", []string{"CLICOLOR_FORCE=1"}, "REF     NOTE\nprod/1  \x1b[31m" + text + "\x1b[m\n"},
		"to be spoken":      {"-o table", []string{EnvAccessible + "=1"}, "ref: prod/1\nnote: " + text + "\n"},
		"the default":       {"table", []string{"COLUMNS=30"}, "REF\tNOTE\nprod/1\t" + text + "\n"},
		"wide":              {"-o wide", []string{"COLUMNS=30"}, "REF\tNOTE\nprod/1\t" + text + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(place{env: tc.env})
			list, err := NewList(s.printer(t, tc.format), ListSpec[row]{Schema: "sbx.x/v1", Columns: columns})
			require.NoError(t, err)
			require.NoError(t, list.Add(row{"prod/1", text}))
			require.NoError(t, list.Close())
			assert.Equal(t, tc.want, s.out.String())
		})
	}
}

// TestAWatchInAPipeClearsNothing: what shows a table there cannot move its cursor.
func TestAWatchInAPipeClearsNothing(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	p := s.printer(t, "-o table")
	p.BeginFrame()
	require.NoError(t, p.Line("x"))
	require.NoError(t, p.ShowFrame())
	assert.Equal(t, "x\n", s.out.String())
}
