package tui

import (
	"context"
	"fmt"
	"image/color"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/fleet"
	"sbx/internal/ops/look"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/testkit/picture"
	"sbx/internal/triage"
)

// incidentScene is a fleet with stuck sandboxes of several causes, for the picture of the dashboard.
type incidentScene struct{ *scene }

func (incidentScene) Profiles() []string { return []string{"e2b", "novita", "local"} }

func (incidentScene) Look(_ context.Context, items []sandbox.Sandbox) []look.LiveLook {
	var all []look.LiveLook
	for i, box := range items {
		trend := triage.Trend{
			Samples: 2, CPUPercent: new(incidentCPU(box.Name, i)), MemoryBytes: new(int64((120 + 9*i) << 20)), MemoryLimitBytes: new(int64(512 << 20)),
		}
		v := incidentVerdict(box.Name)
		all = append(all, look.LiveLook{
			Judged: fleet.Judged{
				Sandbox: box, Verdict: v, Figures: &selector.Figures{Trend: trend}, Signals: triage.Signals{Logs: &triage.LogFindings{Lines: 1204}},
				Output: []sandbox.LogLine{{Text: "planning step 2"}, {Text: "planning step 3"}, {Text: "planning step 3"}},
			},
			Usage: &look.SandboxUsage{Sandbox: box, Trend: trend, Limits: triage.DefaultThresholds(), Verdict: v},
		})
	}
	return all
}

// incidentCPU is what a sandbox uses, in percent of a core.
func incidentCPU(name string, i int) float64 {
	switch name {
	case "builder":
		return float64(98 + i%3)
	case "tester":
		return float64(20 + 9*i%50)
	}
	return float64(i % 2)
}

func incidentVerdict(name string) triage.Verdict {
	stuck := func(c sandbox.Cause, p triage.UsagePattern, reason triage.Reason) triage.Verdict {
		return triage.Verdict{Stuck: sandbox.True, Cause: c, Confidence: sandbox.Probable, Pattern: p, Reasons: []triage.Reason{reason}, Looked: true}
	}
	switch name {
	case "builder":
		return stuck(sandbox.CauseBusyLoop, triage.PatternBusyLoop, "a processor is busy, and nothing comes out")
	case "reviewer":
		return stuck(sandbox.CauseHungIO, triage.PatternHungIO, "it waits on a connection, and nothing comes in")
	case "planner":
		return stuck(sandbox.CauseSilent, triage.PatternIdle, "it is silent and idle")
	}
	return triage.Verdict{Stuck: sandbox.False, Reasons: []triage.Reason{"it writes"}, Looked: true}
}

func newIncidentScene() incidentScene {
	s := incidentScene{&scene{pages: map[string]string{}, rounds: map[string]look.LiveRound{}}}
	ids := map[string]string{"e2b": "i%02da4k2m9p1r7t3v5x8z", "novita": "s%02dc2e4g6i8k0m1", "local": "k%02dv9x2mqa"}
	fleets := map[string][]string{
		"e2b":    {"builder", "builder", "reviewer", "builder", "planner", "builder", "reviewer", "builder", "planner", "builder", "tester", "tester", "tester", "tester"},
		"novita": {"reviewer", "planner", "builder", "reviewer", "planner", "builder", "tester", "tester", "tester", "tester", "tester"},
		"local":  {"tester", "tester"},
	}
	for profile, names := range fleets {
		f := look.Figures{Provider: profile, Limits: triage.DefaultThresholds()}
		f.Counts.Active, f.Stuck = new(int64(len(names))), new(int64(0))
		var rows []look.LiveRow
		for i, name := range names {
			v := incidentVerdict(name)
			age := time.Duration(94-5*i) * time.Minute
			if v.Stuck == sandbox.True {
				*f.Stuck++
			} else {
				age = time.Duration(16-i) * time.Minute
			}
			box := boxOf(profile, fmt.Sprintf(ids[profile], i+11), name, age, v)
			box.Sandbox.TaskID = fmt.Sprintf("T-%d", 400+7*i+len(profile))
			rows, f.Ages = append(rows, box), append(f.Ages, age)
		}
		s.rounds[profile] = look.LiveRound{
			At: noon().Add(-time.Second), Rows: rows, Figures: f,
			Connection: fleet.Connection{CompleteAt: noon(), Took: time.Duration(len(rows)*17) * time.Millisecond},
		}
	}
	return s
}

// TestPictureOfTheDashboard: the documentation shows the screen as it is, in two sizes; `make pictures` draws it.
func TestPictureOfTheDashboard(t *testing.T) {
	t.Parallel()
	for name, theme := range map[string]picture.Theme{"dark": picture.Dark(), "light": picture.Light()} {
		s := newIncidentScene()
		m := incidentBoard(t, s, name, 80, 24)
		picture.Hold(t, "dashboard-"+name, m.Frame(), 80, theme, *update)
		m = incidentBoard(t, s, name, 120, 36)
		press(m, "space", "space", "j", "space", "k")
		picture.Hold(t, "dashboard-wide-"+name, m.Frame(), 120, theme, *update)
	}
}

// incidentBoard is a dashboard of the incident on a background: its tab is that of the stuck ones.
func incidentBoard(t *testing.T, s incidentScene, background string, width, height int) *Model {
	t.Helper()
	m := boardOf(t, s, width, height)
	m.operator = "ops@host1"
	m.Update(tea.BackgroundColorMsg{Color: map[string]color.Color{"dark": color.Black, "light": color.White}[background]})
	m.Update(cleanupMsg(s.Cleanup(t.Context())))
	for range sparkCells {
		if cmd := m.look(&m.looking, m.toLook(), 0, noon()); cmd != nil {
			m.Update(cmd())
		}
	}
	m.openTab(tabStuck)
	return m
}
