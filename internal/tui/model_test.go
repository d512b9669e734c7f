package tui

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"image/color"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/triage"
)

var update = flag.Bool("update", false, "write the golden frames")

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// scene is a Source in a test's hands.
type scene struct {
	mu     sync.Mutex
	rounds map[string]look.LiveRound
	looks  [][]sandbox.Sandbox
	pages  map[string]string
	plan   Plan
	done   []string // the verbs that were carried out
	do     func(ctx context.Context, report func(string)) ops.ActResult
	boxes  []sandbox.Sandbox // of the newest plan
	tasks  []ops.TaskState
	broken error // of the store

	endless bool // logs go on
	runbook func(ctx context.Context, watch RunbookWatch) error
}

func (s *scene) Profiles() []string { return []string{"e2b", "local"} }

func (s *scene) Round(_ context.Context, profile string) look.LiveRound {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rounds[profile]
	r.Profile = profile
	return r
}

func (s *scene) Look(_ context.Context, items []sandbox.Sandbox) []look.LiveLook {
	s.looks = append(s.looks, items)
	var all []look.LiveLook
	for _, box := range items {
		trend := triage.Trend{Samples: 2, CPUPercent: new(97.5), MemoryBytes: new(int64(200 << 20)), MemoryLimitBytes: new(int64(400 << 20))}
		all = append(all, look.LiveLook{
			Judged: fleet.Judged{Sandbox: box, Verdict: stuckVerdict(), Figures: &selector.Figures{Trend: trend}},
			Usage:  &look.SandboxUsage{Sandbox: box, Trend: trend, Limits: triage.DefaultThresholds(), Verdict: stuckVerdict()},
		})
	}
	return all
}

func (*scene) Investigation(_ context.Context, judged []fleet.Judged) ([]StepPage, error) {
	var pages []StepPage
	for i, known := range triage.StuckSteps() {
		pages = append(pages, StepPage{
			Kind: i + 1, Word: known.Word, Title: known.Title, Text: []string{"What to know of it."}, Answers: []look.Answer{{Question: "how many are there?", Text: strconv.Itoa(len(judged)), Known: true}},
			Line: "sbx stats", Without: "the dashboard of the provider", ETA: 2 * time.Minute,
		})
	}
	return pages, nil
}

func (*scene) Cleanup(context.Context) CleanupWord { return CleanupWord{"never ran", output.Warn} }

func (s *scene) Tasks(context.Context) ([]ops.TaskState, error) { return s.tasks, s.broken }

func (s *scene) Page(_ context.Context, verb string, ref sandbox.Ref, _ int) (string, error) {
	return s.pages[verb+" "+ref.String()], nil
}

func (s *scene) Follow(ctx context.Context, ref sandbox.Ref, _ int, item func(any)) {
	for text := range strings.SplitSeq(s.pages["logs "+ref.String()], "\n") {
		pattern, _ := matcher.Match(text)
		item(look.LogLine{LogLine: sandbox.LogLine{Text: text}, Pattern: pattern})
	}
	if s.endless {
		<-ctx.Done()
	}
}

func (s *scene) Plan(_ context.Context, _ string, boxes []sandbox.Sandbox, _ int) (Plan, error) {
	s.boxes = boxes
	return s.plan, nil
}

func (s *scene) Keep(_ context.Context, refs []sandbox.Ref, d time.Duration) (all []string) {
	for _, ref := range refs {
		all = append(all, ref.String()+" kept for "+d.String())
	}
	return all
}

func (s *scene) Do(ctx context.Context, p Plan, _ []string, report func(string)) ops.ActResult {
	s.done = append(s.done, p.Act.Verb)
	if s.do == nil {
		return ops.ActResult{}
	}
	return s.do(ctx, report)
}

func (s *scene) Runbook(ctx context.Context, _ int, watch RunbookWatch) error {
	if s.runbook == nil {
		return nil
	}
	return s.runbook(ctx, watch)
}

func stuckVerdict() triage.Verdict {
	return triage.Verdict{Stuck: sandbox.True, Cause: sandbox.CauseBusyLoop, Confidence: sandbox.Probable, Pattern: triage.PatternBusyLoop, Reasons: []triage.Reason{"a processor is busy, and nothing comes out"}, Looked: true}
}

func boxOf(provider, id, name string, age time.Duration, v triage.Verdict) look.LiveRow {
	return look.LiveRow{Sandbox: &sandbox.Sandbox{
		Provider: provider, ID: id, Name: name, TaskID: "T-" + id[:2], State: sandbox.StateRunning, CreatedAt: noon().Add(-age), StartedAt: noon().Add(-age),
	}, Verdict: v, At: noon()}
}

func newScene() *scene {
	working := triage.Verdict{Stuck: sandbox.False, Reasons: []triage.Reason{"young"}}
	open := triage.Verdict{Stuck: sandbox.Unknown, Reasons: []triage.Reason{triage.ReasonNotLooked}}
	rows := []look.LiveRow{
		boxOf("e2b", "i0a4k2m9p1r7t3v5x8z2b", "builder", 45*time.Minute, stuckVerdict()),
		boxOf("e2b", "i7c2e4g6i8k0m1n3p5r7t", "reviewer with a name that is much too long for its column", 12*time.Minute, open),
		boxOf("e2b", "i9z8y7x6w5v4u3t2s1r0q", "worker", 3*time.Minute, working),
	}
	local := []look.LiveRow{boxOf("local", "k3v9x2mq7a", "tests \x1b[31m日本", 90*time.Second, working)}
	figures := func(name string, rows []look.LiveRow) look.Figures {
		f := look.Figures{Provider: name, Limits: triage.DefaultThresholds()}
		f.Counts.Active = new(int64(len(rows)))
		f.Stuck, f.Ages = new(int64(0)), []time.Duration{time.Minute}
		return f
	}
	s := &scene{pages: map[string]string{}, rounds: map[string]look.LiveRound{
		"e2b":   {At: noon().Add(-time.Second), Connection: fleet.Connection{CompleteAt: noon(), Took: 120 * time.Millisecond}, Rows: rows, Figures: figures("e2b", rows)},
		"local": {At: noon().Add(-time.Second), Connection: fleet.Connection{CompleteAt: noon(), Took: 2 * time.Millisecond}, Rows: local, Figures: figures("local", local)},
	}}
	return s
}

// board is a dashboard of a scene at noon that has read everything once.
func board(t *testing.T, s *scene, width, height int) *Model {
	t.Helper()
	return boardOf(t, s, width, height)
}

func boardOf(t *testing.T, s Source, width, height int) *Model {
	t.Helper()
	m := NewModel(t.Context(), s, noon, "sbx", output.Cells{})
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	for _, name := range s.Profiles() {
		_, cmd := m.Update(newRound(s.Round(t.Context(), name), nil))
		_ = cmd // a look, which the test makes itself
	}
	m.looking, m.sweeping = false, false
	return m
}

func press(m *Model, keys ...string) (cmds []tea.Cmd) {
	for _, k := range keys {
		msg := tea.KeyPressMsg{Text: k, Code: []rune(k)[0]}
		switch k {
		case "space":
			msg = tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
		case "ctrl+c":
			msg = tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
		case "enter":
			msg = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			msg = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "tab":
			msg = tea.KeyPressMsg{Code: tea.KeyTab}
		case "down":
			msg = tea.KeyPressMsg{Code: tea.KeyDown}
		case "pgdown":
			msg = tea.KeyPressMsg{Code: tea.KeyPgDown}
		case "backspace":
			msg = tea.KeyPressMsg{Code: tea.KeyBackspace}
		}
		_, cmd := m.Update(msg)
		cmds = append(cmds, cmd)
	}
	return cmds
}

// TestFrames holds the screen at four sizes in four looks; `go test ./internal/tui -run TestFrames -update`
// writes it.
func TestFrames(t *testing.T) {
	t.Parallel()
	looks := map[string]func(m *Model){
		"dark":  func(m *Model) { m.Update(tea.BackgroundColorMsg{Color: color.Black}) },
		"light": func(m *Model) { m.Update(tea.BackgroundColorMsg{Color: color.White}) },
		"none":  func(m *Model) { m.cells.Plain = true },
		"ascii": func(m *Model) { m.cells.Plain, m.cells.ASCII = true, true },
	}
	for _, size := range [][2]int{{40, 12}, {80, 24}, {120, 40}, {200, 60}} {
		for look, take := range looks {
			name := fmt.Sprintf("%dx%d-%s", size[0], size[1], look)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m := board(t, newScene(), size[0], size[1])
				if cmd := m.lookDue(noon()); cmd != nil {
					m.Update(cmd())
				}
				take(m)
				lines := m.Frame()
				require.Len(t, lines, size[1])
				for i := range lines {
					assert.LessOrEqual(t, output.Width(lines[i]), size[0], "line %d", i)
					lines[i] = strings.TrimRight(lines[i], " ")
				}
				got, path := strings.Join(lines, "\n")+"\n", filepath.Join("testdata", name+".golden")
				if look == "ascii" {
					assert.NotRegexp(t, `[^\n -~]`, got)
				}
				if *update {
					require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
				}
				want, err := os.ReadFile(path)
				require.NoError(t, err)
				assert.Equal(t, string(want), got)
			})
		}
	}
}

// TestAProviderThatFailsKeepsItsRows: they are marked as stale with the error, and come back.
func TestAProviderThatFailsKeepsItsRows(t *testing.T) {
	t.Parallel()
	m := board(t, newScene(), 120, 40)
	m.cells.Plain = true
	before := len(m.rows)
	m.Update(newRound(look.LiveRound{Profile: "e2b", Err: errors.New("e2b: no answer within 20s")}, nil))
	assert.Len(t, m.rows, before)
	frame := strings.Join(m.Frame(), "\n")
	assert.Contains(t, frame, "STALE 1s: e2b: no answer within 20s")
	assert.True(t, m.rows[0].stale)
	assert.Equal(t, noon().Add(pollAway), m.feeds[0].next, "it is asked less often")
	m.Update(newRound(m.feeds[1].round, nil))
	m.Update(newRound(newScene().Round(t.Context(), "e2b"), nil))
	assert.NotContains(t, strings.Join(m.Frame(), "\n"), "STALE")
}

// TestOnePollOfAProviderIsInFlight, and a key never waits for one.
func TestOnePollOfAProviderIsInFlight(t *testing.T) {
	t.Parallel()
	m := NewModel(t.Context(), newScene(), noon, "sbx", output.Cells{})
	require.NotNil(t, m.pollDue(noon()))
	assert.Nil(t, m.pollDue(noon().Add(time.Hour)), "both are being asked")
	press(m, "j", "?", "esc", "/", "x", "enter")
	assert.Equal(t, "x", m.filter)
	m.Update(newRound(look.LiveRound{Profile: "local"}, nil))
	assert.NotNil(t, m.pollDue(noon().Add(time.Hour)))
	press(m, "p")
	m.Update(newRound(look.LiveRound{Profile: "local"}, nil))
	assert.Nil(t, m.pollDue(noon().Add(2*time.Hour)), "paused")
}

// TestOnlyRowsOnTheScreenAreLookedAt, once in a while.
func TestOnlyRowsOnTheScreenAreLookedAt(t *testing.T) {
	t.Parallel()
	s := newScene()
	m := board(t, s, 80, 24)
	cmd := m.lookDue(noon())
	require.NotNil(t, cmd)
	assert.Nil(t, m.lookDue(noon()), "one look at a time")
	m.Update(cmd())
	require.Len(t, s.looks, 1)
	assert.Len(t, s.looks[0], 4)
	assert.Equal(t, 2, m.counts[tabStuck], "of the look the verdict is shown where the record does not decide")
	assert.Nil(t, m.lookDue(noon()), "it is not looked at again at once")
}

// TestTheCursorStaysOnItsSandbox while rows come and go.
func TestTheCursorStaysOnItsSandbox(t *testing.T) {
	t.Parallel()
	s := newScene()
	m := board(t, s, 80, 24)
	press(m, "j", "j")
	at := m.cursor
	r := s.rounds["e2b"]
	r.Rows = append([]look.LiveRow{boxOf("e2b", "a0000000000000000000a", "first", 2*time.Hour, stuckVerdict())}, r.Rows...)
	r.Profile = "e2b"
	m.Update(newRound(r, nil))
	assert.Equal(t, at, m.cursor)
	r.Rows = slices.DeleteFunc(slices.Clone(r.Rows), func(j look.LiveRow) bool { return j.Sandbox.Ref() == at })
	m.Update(newRound(r, nil))
	assert.NotEqual(t, at, m.cursor)
	_, ok := m.current()
	assert.True(t, ok, "it stays at its place")
}

// TestPages opens the page of a verb, and shows what it prints escaped.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newScene()
	m := board(t, s, 80, 24)
	m.cells.Plain = true
	ref := m.cursor.String()
	s.pages["inspect "+ref] = "one\x1b[2J\ntwo\n" + strings.Repeat("x", 90_000)
	cmds := press(m, "enter")
	assert.Contains(t, strings.Join(m.Frame(), "\n"), "reading ...")
	m.Update(cmds[0]())
	frame := strings.Join(m.Frame(), "\n")
	assert.Contains(t, frame, "inspect "+ref)
	assert.Contains(t, frame, `one\x1b[2J`)
	for _, line := range m.Frame() {
		assert.LessOrEqual(t, output.Width(line), 80)
	}
	press(m, "esc")
	m.Update(cmds[0]())
	assert.Nil(t, m.page, "a page that was left stays closed")
	press(m, "y")
	assert.Equal(t, "copied: "+ref, m.notice)
	m.rows[0].Sandbox = &sandbox.Sandbox{Provider: "e2b", ID: "$(reboot)"}
	press(m, "Y")
	assert.Equal(t, "copied: sbx inspect 'e2b/$(reboot)'", m.notice, "a provider chooses its ids")
	press(m, "?")
	assert.Contains(t, strings.Join(m.Frame(), "\n"), "inspect the sandbox under the cursor")
}

// TestAPasteIsNoStorm: 10 kB in the filter are cut, and lines become words.
func TestAPasteIsNoStorm(t *testing.T) {
	t.Parallel()
	m := board(t, newScene(), 80, 24)
	press(m, "/")
	m.Update(tea.PasteMsg{Content: strings.Repeat("zz\nq ", 2500)})
	assert.LessOrEqual(t, len(m.filter), mostTyped)
	assert.NotContains(t, m.filter, "\n")
	assert.Contains(t, strings.Join(m.tableLines(), "\n"), "nothing here matches")
	press(m, "esc")
	assert.Len(t, m.rows, 4)
}

// TestNoKeysBreakTheScreen plays random keys, clicks, rounds and sizes: every frame fits its screen, and nothing is ended
// but by the answers of a plan that was asked. SBX_SEEDS=100000 plays so many sequences.
func TestNoKeysBreakTheScreen(t *testing.T) {
	t.Parallel()
	keys := []string{
		"j", "k", "g", "G", "n", "N", "o", "O", "p", "y", "Y", "?", "/", "l", "x", "X", "s", "R", "K", "a", "space", "1", "2", "3", "4", "5", "6", "7",
		"enter", "enter", "esc", "esc", "tab", "down", "pgdown", "backspace",
	}
	tasks := taskScene(t).tasks
	for seed := range sequences(t, 300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := newScene()
		s.plan = planOf(2, "12")
		m := board(t, s, 80, 24)
		for range 60 {
			asked, over := m.act, m.act != nil && m.act.step == actOver
			switch rng.IntN(11) {
			case 0:
				m.Update(tea.WindowSizeMsg{Width: rng.IntN(220), Height: rng.IntN(70)})
			case 1:
				r := s.Round(t.Context(), "e2b")
				r.Rows = r.Rows[:rng.IntN(len(r.Rows)+1)]
				if rng.IntN(3) == 0 {
					r.Err = errors.New("it hangs \x1b[5m")
				}
				m.Update(newRound(r, nil))
			case 2:
				m.Update(tasksMsg{tasks: tasks[:rng.IntN(len(tasks))]})
			case 3, 4:
				at := tea.Mouse{X: rng.IntN(230) - 5, Y: rng.IntN(75) - 5, Button: tea.MouseButton(rng.IntN(8))}
				m.Update([]tea.Msg{tea.MouseClickMsg(at), tea.MouseWheelMsg(at), tea.MouseReleaseMsg(at), tea.MouseMotionMsg(at)}[rng.IntN(4)])
				if !over || m.act != nil { // a click leaves the page of what was done
					require.Same(t, asked, m.act, "seed %d: no click begins or answers", seed)
				}
			case 5:
				pages, _ := s.Investigation(t.Context(), nil)
				m.Update(stepsMsg{pages: pages, at: noon()})
			default:
				for _, cmd := range press(m, keys[rng.IntN(len(keys))]) {
					if m.act != nil && m.act.step == actPlanning && cmd != nil {
						m.Update(cmd())
					}
				}
			}
			if asked != nil && m.act == asked && asked.step == actRunning {
				require.Equal(t, len(asked.plan.Questions), asked.asked, "seed %d", seed)
				m.Update(doneMsg{asked, ops.ActResult{}})
			}
			lines := m.Frame()
			require.Len(t, lines, m.height, "seed %d", seed)
			for _, line := range lines {
				require.LessOrEqual(t, output.Width(line), m.width, "seed %d: %q", seed, line)
				require.NotContains(t, line, "\x1b[5m")
			}
		}
	}
}

// TestTheDashboardJudgesNothing: no comparison with a threshold stands in this room.
func TestTheDashboardJudgesNothing(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if !strings.HasSuffix(path, "_test.go") {
			assert.NotContains(t, string(text), "Thresholds", path)
			assert.NotContains(t, string(text), ".Limits", path)
		}
	}
}

// sequences is how many are played: SBX_SEEDS, else usual.
func sequences(t *testing.T, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv("SBX_SEEDS")
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err)
	return n
}
