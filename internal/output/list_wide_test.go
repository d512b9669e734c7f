package output

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLinesByFormat(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		format  string
		columns []string
		narrow  bool // no WideLine
		want    string
	}{
		"table":               {"table", nil, false, "short\n"},
		"wide":                {"wide", nil, false, "long\n"},
		"wide without a line": {"wide", nil, true, "short\n"},
		"columns ask for it":  {"wide", []string{"word"}, false, "WORD\nx\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(place{})
			p := s.printer(t, tc.format)
			p.Columns = tc.columns
			spec := ListSpec[string]{
				Schema:   "sbx.x/v1",
				Columns:  []Column[string]{{Name: "word", Value: func(v string) any { return v }}},
				Line:     func(string) string { return "short" },
				WideLine: func(string) string { return "long" },
			}
			if tc.narrow {
				spec.WideLine = nil
			}
			list, err := NewList(p, spec)
			require.NoError(t, err)
			require.NoError(t, list.Add("x"))
			require.NoError(t, list.Close())
			assert.Equal(t, tc.want, s.out.String())
		})
	}
}
