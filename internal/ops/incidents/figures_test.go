package incidents

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/history"
	"sbx/internal/ops"
	"sbx/internal/runs"
)

// count is one of a provider at a minute, with how many were stuck.
func count(minute int, verb, provider string, stuck int64) history.Event {
	at := time.Date(2026, 11, 23, 12, minute, 0, 0, time.UTC)
	return history.Event{At: at, Verb: verb, Providers: []string{provider}, Figures: []history.Figure{{Name: ops.FigureStuck, Value: &stuck}}}
}

func figuresReport(acted int, events ...history.Event) *IncidentReport {
	r := &IncidentReport{events: events}
	if acted > 0 {
		r.Acts = []runs.Act{{At: time.Date(2026, 11, 23, 12, acted, 0, 0, time.UTC)}}
	}
	r.addFigures()
	return r
}

func TestFiguresAreThoseBeforeAndAfterTheActs(t *testing.T) {
	t.Parallel()
	partial := count(4, "diagnose", "a", 1)
	partial.Errors = []string{"a provider did not answer"}
	for name, test := range map[string]struct {
		acted         int
		events        []history.Event
		before, after *int64
	}{
		"the last before the act":     {5, []history.Event{count(1, "diagnose", "a", 2), count(4, "diagnose", "a", 4), count(6, "diagnose", "a", 1), count(9, "diagnose", "a", 0)}, new(int64(4)), new(int64(0))},
		"nothing was done":            {0, []history.Event{count(1, "diagnose", "a", 2), count(4, "diagnose", "a", 4), count(6, "diagnose", "a", 3)}, new(int64(2)), new(int64(3))},
		"nobody looked before":        {1, []history.Event{count(2, "diagnose", "a", 0), count(3, "diagnose", "a", 0)}, nil, new(int64(0))},
		"nobody looked since":         {5, []history.Event{count(2, "diagnose", "a", 4)}, new(int64(4)), nil},
		"not of another verb":         {5, []history.Event{count(2, "diagnose", "a", 4), count(6, "stats", "a", 0)}, new(int64(4)), nil},
		"not of other providers":      {5, []history.Event{count(2, "diagnose", "a", 4), count(6, "diagnose", "b", 0)}, new(int64(4)), nil},
		"not of a part":               {5, []history.Event{count(2, "diagnose", "a", 4), partial}, new(int64(4)), nil},
		"a verb that can be compared": {5, []history.Event{count(2, "diagnose", "a", 4), count(3, "stats", "a", 3), count(6, "stats", "a", 1)}, new(int64(3)), new(int64(1))},
	} {
		r := figuresReport(test.acted, test.events...)
		require.Len(t, r.Figures, 1, name)
		assert.Equal(t, test.before, r.Figures[0].Before, name)
		assert.Equal(t, test.after, r.Figures[0].After, name)
	}
}
