package ops

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/incident"
)

// lookAt is a look at a minute, with how many were stuck.
func lookAt(minute int, kind, provider string, stuck float64) incident.Look {
	at := time.Date(2026, 11, 23, 12, minute, 0, 0, time.UTC)
	return incident.Look{At: at, Kind: kind, Providers: []string{provider}, Figures: []incident.Figure{{Name: figureStuck, Value: &stuck}}}
}

func figuresReport(acted int, looks ...incident.Look) *IncidentReport {
	r := &IncidentReport{Incident: &incident.Incident{Events: []incident.Event{{Looks: looks}}}}
	if acted > 0 {
		r.Acts = []cleanup.Act{{At: time.Date(2026, 11, 23, 12, acted, 0, 0, time.UTC)}}
	}
	r.addFigures()
	return r
}

func TestFiguresAreThoseBeforeAndAfterTheActs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		acted         int
		looks         []incident.Look
		before, after *float64
	}{
		"the last before the act":     {5, []incident.Look{lookAt(1, "diagnose", "a", 2), lookAt(4, "diagnose", "a", 4), lookAt(6, "diagnose", "a", 1), lookAt(9, "diagnose", "a", 0)}, new(4.0), new(0.0)},
		"nothing was done":            {0, []incident.Look{lookAt(1, "diagnose", "a", 2), lookAt(4, "diagnose", "a", 4), lookAt(6, "diagnose", "a", 3)}, new(2.0), new(3.0)},
		"nobody looked before":        {1, []incident.Look{lookAt(2, "diagnose", "a", 0), lookAt(3, "diagnose", "a", 0)}, nil, new(0.0)},
		"nobody looked since":         {5, []incident.Look{lookAt(2, "diagnose", "a", 4)}, new(4.0), nil},
		"not of another kind":         {5, []incident.Look{lookAt(2, "diagnose", "a", 4), lookAt(6, "stats", "a", 0)}, new(4.0), nil},
		"not of other providers":      {5, []incident.Look{lookAt(2, "diagnose", "a", 4), lookAt(6, "diagnose", "b", 0)}, new(4.0), nil},
		"a kind that can be compared": {5, []incident.Look{lookAt(2, "diagnose", "a", 4), lookAt(3, "stats", "a", 3), lookAt(6, "stats", "a", 1)}, new(3.0), new(1.0)},
	} {
		r := figuresReport(test.acted, test.looks...)
		require.Len(t, r.Figures, 1, name)
		assert.Equal(t, test.before, r.Figures[0].Before, name)
		assert.Equal(t, test.after, r.Figures[0].After, name)
	}
}

func TestAnEventKeepsTheFirstAndTheLastLook(t *testing.T) {
	t.Parallel()
	ev := &incident.Event{}
	for minute := range 4 {
		keepLook(ev, lookAt(minute, "diagnose", "a", float64(minute)), nil)
	}
	keepLook(ev, lookAt(5, "stats", "a", 9), nil)
	keepLook(ev, lookAt(6, "diagnose", "a", 9), []error{errors.New("a provider did not answer")})
	assert.Equal(t, []incident.Look{lookAt(0, "diagnose", "a", 0), lookAt(3, "diagnose", "a", 3), lookAt(5, "stats", "a", 9)}, ev.Looks)
}
