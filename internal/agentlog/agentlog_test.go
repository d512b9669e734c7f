package agentlog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// at writes a line of a session: seconds after noon, the type without agent., and the data.
func at(second int, kind, data string) string {
	return fmt.Sprintf(`{"id":"e-%s-%d","sandbox_id":"box","event_type":"agent.%s","event_data":%s,"source":"agent","created_at":"%s"}`,
		kind, second, kind, data, noon.Add(time.Duration(second)*time.Second).Format("2006-01-02T15:04:05.999999+00:00"))
}

// readText reads a session to its end.
func readText(t *testing.T, text string, o Options) (*Session, error) {
	t.Helper()
	c := NewCollector(o)
	err := c.ReadLines(t.Context(), strings.NewReader(text))
	return c.Session(), err
}

func read(t *testing.T, o Options, lines ...string) *Session {
	t.Helper()
	s, err := readText(t, strings.Join(lines, "\n")+"\n", o)
	require.NoError(t, err)
	return s
}

func TestAnEventIsDescribedInOneLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 500)
	for _, tc := range []struct{ kind, data, want string }{
		{"started", `{}`, ""},
		{"started", `{"message":"begins"}`, "begins"},
		{"system_message", `{"turn":0,"metadata":{"subtype":"init"}}`, "init"},
		{"assistant_message", `{"turn":1,"content":"first\nsecond","content_length":12}`, "first ..."},
		{"message", `{"content":[{"type":"text","text":"in a block"}]}`, "in a block"},
		{"user_message", `{"content":"` + long + `"}`, strings.Repeat("é", 160) + "..."},
		{"tool_use", `{"tool":"Bash","input":{"command":"go test ./..."}}`, "Bash go test ./..."},
		{"tool_use", `{"tool":"Read","tool_input":{"file_path":"a.go","limit":5}}`, "Read a.go"},
		{"tool_use", `{"tool":"Own","input":{"z":"last","b":"named by nobody"}}`, "Own named by nobody"},
		{"tool_use", `{"tool":"Own","input":"a text"}`, "Own a text"},
		{"tool_use", `{"tool":null,"input":{"command":"ls"}}`, "ls"},
		{"tool_use", `"a text"`, "a text"},
		{"tool_use", `["one", "two"]`, "one"},
		{"tool_completed", `{"tool":"Bash","tool_input":{"command":"ls"},"tool_response":{"stdout":"","stderr":"no such file"},"duration_ms":1500}`, "Bash ls -> no such file (1.5s)"},
		{"tool_completed", `{"tool":"Bash","output":"done"}`, "Bash -> done"},
		{"user_tool_result", `{"result":"ok","result_truncated":true}`, "-> ok (the result is cut)"},
		{"user_tool_result", `{}`, "-> nothing"},
		{"file_edited", `{"file_path":"a.go","change_type":"modified","lines_added":5,"lines_removed":2}`, "edited a.go +5 -2"},
		{"file_edited", `{"file_path":"a.go","change_type":"created","lines_added":"7"}`, "created a.go +7"},
		{"file_edited", `{"file_path":"a.go","full_diff":"--- a\n+++ b\n-x\n+y\n+z\n"}`, "edited a.go +2 -1"},
		{"file_edited", `{"file_path":"a.go","diff_preview":"-x\n"}`, "edited a.go"},
		{"completed", `{"success":true,"turns":12,"exit_code":0,"cost":0.5,"stop_reason":"end_turn"}`, "success, 12 turns, exit 0, cost 0.5, end_turn"},
		{"completed", `{"success":"false"}`, "failed"},
		{"waiting", `{"reason":"a message"}`, "a message"},
		{"heartbeat", `{"status":"running","event_count":3}`, "running, 3 events"},
		{"unheard_of", `{"x":{"y":5}}`, `{"x":{"y":5}}`},
		{"unheard_of", `null`, ""},
	} {
		s := read(t, Options{}, at(0, tc.kind, tc.data))
		require.Len(t, s.Events, 1, tc.data)
		assert.Equal(t, tc.want, s.Events[0].What, "%s %s", tc.kind, tc.data)
	}
}

func TestNothingOfABrokenFileIsLost(t *testing.T) {
	t.Parallel()
	text := strings.Join([]string{
		at(10, "started", `{}`), "", "garbage", `[1]`, `{"no":"event"}`,
		at(5, "waiting", `{}`), at(10, "started", `{}`), `{"event_type":"agent.message","event_data":{"content":"untimed"}}`,
		`{"event_type":5,"event_data":{"x":"y"},"created_at":1795176020}`, at(30, "completed", `{}`)[:60],
	}, "\n")
	s, err := readText(t, text, Options{})
	require.NoError(t, err)
	var whats []string
	for _, e := range s.Events {
		whats = append(whats, fmt.Sprintf("%d %s %s", e.Line, e.Type, e.What))
	}
	assert.Equal(t, []string{"6 agent.waiting ", "8 agent.message untimed", "1 agent.started ", "9 5 y"}, whats)
	assert.Equal(t, []string{
		"3 lines are no events and are left out; the first is line 3",
		"the file ends in the middle of line 10, which is left out",
		"line 7 came before, with its id, and is left out",
		"line 6 is older than the line before; events are sorted by time",
		"line 8 has no time and stays behind the line before",
	}, s.Warnings())
	assert.Equal(t, 4, s.Lost())
}

// TestAnIDOfOthersProvesNoSameness: an agent that counts from 1 is started twice in one file.
func TestAnIDOfOthersProvesNoSameness(t *testing.T) {
	t.Parallel()
	line := func(id string, second int, command string) string {
		return fmt.Sprintf(`{"id":%s,"event_type":"agent.tool_use","event_data":{"tool":"Bash","input":{"command":%q}},"created_at":%d}`, id, command, noon.Unix()+int64(second))
	}
	for name, tc := range map[string]struct {
		lines    []string
		shown    int
		repeated Problem
		sameID   Problem
	}{
		"a run with the ids of another": {[]string{line("1", 0, "ls"), line("2", 1, "make"), line("1", 10, "rm"), line("2", 11, "make"), line("2", 11, "make")}, 4, Problem{1, 5}, Problem{2, 3}},
		"three contents of one id":      {[]string{line(`"a"`, 0, "x"), line(`"a"`, 0, "y"), line(`"a"`, 0, "z"), line(`"a"`, 0, "y"), line(`"a"`, 0, "x")}, 3, Problem{2, 4}, Problem{2, 2}},
		"0 in each line":                {[]string{line("0", 0, "x"), line("0", 1, "y"), line(`"0"`, 2, "z")}, 3, Problem{}, Problem{}},
		"true in each line":             {[]string{line("true", 0, "x"), line("true", 1, "y"), line("false", 2, "z")}, 3, Problem{}, Problem{}},
	} {
		s := read(t, Options{}, tc.lines...)
		assert.Len(t, s.Events, tc.shown, name)
		assert.Equal(t, []Problem{tc.repeated, tc.sameID}, []Problem{s.Repeated, s.SameID}, name)
		assert.Zero(t, s.Lost(), name)
		_, again, err := eachOf(t, strings.Join(tc.lines, "\n"))
		require.NoError(t, err)
		assert.Len(t, again, tc.shown, name)
	}
	c := NewCollector(Options{})
	for i, detail := range []string{"created", "resumed", "resumed"} {
		assert.Equal(t, i < 2, c.Add(Raw{ID: "1", Type: "sandbox", Detail: detail}), detail)
	}
}

// TestWhatStandsAroundEventsIsSkipped: byte order marks, also where files were joined, and the NULs of a crash.
func TestWhatStandsAroundEventsIsSkipped(t *testing.T) {
	t.Parallel()
	const mark = "\ufeff"
	text := mark + at(0, "started", `{}`) + "\r\n" + mark + " " + at(1, "message", `{}`) + "\x00\x00\n" + at(2, "completed", `{}`) + "\n\x00\x00\x00"
	s, all, err := eachOf(t, text)
	require.NoError(t, err)
	assert.Len(t, all, 3)
	assert.Empty(t, s.Warnings())

	// Two events that one line joins are two; what is behind one and is none is named.
	s, all, err = eachOf(t, at(0, "started", `{}`)+at(1, "message", `{}`)+" "+at(2, "completed", `{}`)+"\n"+at(3, "waiting", `{}`)+`{"id`+"\n")
	require.NoError(t, err)
	assert.Len(t, all, 4)
	assert.Equal(t, []string{"line 2 is no event and is left out"}, s.Warnings())
}

// TestAFileThatIsNotTheSameAnyMoreIsReadAnew, whatever its size.
func TestAFileThatIsNotTheSameAnyMoreIsReadAnew(t *testing.T) {
	t.Parallel()
	old := at(0, "started", `{}`) + "\n" + at(1, "message", `{"content":"one"}`) + "\n"
	next := at(5, "started", `{}`) + "\n" + at(6, "message", `{"content":"two, and longer than it was"}`) + "\n"
	for name, tc := range map[string]struct {
		text      string
		another   bool
		restarted bool
		events    int
	}{
		"it has grown":                 {old + next, false, false, 2},
		"nothing is new":               {old, false, false, 0},
		"another with its name":        {next, true, true, 2},
		"another that begins like it":  {old + next, true, true, 2},
		"written anew, and longer":     {next + next[:10] + "\n", false, true, 2},
		"written anew, and as long":    {strings.ReplaceAll(old, "one", "two"), false, true, 1},
		"shortened, then written anew": {next[:len(next)/2] + "\n", false, true, 1},
	} {
		c := NewCollector(Options{Growing: true})
		require.NoError(t, c.ReadLines(t.Context(), strings.NewReader(old)))
		restarted, err := c.ReadGrowth(t.Context(), strings.NewReader(tc.text), int64(len(tc.text)), tc.another)
		require.NoError(t, err)
		assert.Equal(t, tc.restarted, restarted, name)
		assert.Len(t, c.Session().Events, tc.events, name)
	}
}

func TestALastLineWithoutAnEndIsRead(t *testing.T) {
	t.Parallel()
	s, err := readText(t, at(0, "started", `{}`), Options{})
	require.NoError(t, err)
	assert.Len(t, s.Events, 1)
	assert.Empty(t, s.Warnings())
}

func TestALineBeyondTheLimitIsNamed(t *testing.T) {
	t.Parallel()
	s := read(t, Options{}, at(0, "started", `{}`), at(1, "message", `{"content":"`+strings.Repeat("x", MaxLine)+`"}`), at(2, "completed", `{}`))
	assert.Len(t, s.Events, 2)
	assert.Equal(t, []string{"line 2 is longer than 32 MiB and is left out"}, s.Warnings())
}

// eachOf reads a session by the places of its events and then the events, with their diffs.
func eachOf(t *testing.T, text string) (*Session, []Event, error) {
	t.Helper()
	s, err := readText(t, text, Options{Places: true, Diffs: true})
	require.NoError(t, err)
	assert.Empty(t, s.Events)
	var all []Event
	err = s.Each(strings.NewReader(text), false, func(e *Event, _ *Beats) error { all = append(all, *e); return nil })
	return s, all, err
}

func TestEventsAreReadAgainFromTheirFile(t *testing.T) {
	t.Parallel()
	big := strings.Repeat(`+a line\n`, 700_000) // 5 MB
	file := strings.Join([]string{
		at(0, "started", `{}`), at(1, "file_edited", `{"file_path":"a","lines_added":1,"lines_removed":0,"full_diff":"`+big+`","diff_preview":"+a"}`), "garbage",
		at(3, "file_edited", `{"file_path":"b","diff_preview":"+b\n-c","full_diff":""}`), at(2, "waiting", `{}`), at(2, "waiting", `{}`),
		`{"event_type":"agent.message","event_data":{"timestamp":"2026-11-20T11:00:00Z"}}`, `{"event_type":"agent.message","event_data":{"content":"untimed"}}`,
	}, "\n")
	s, all, err := eachOf(t, file)
	require.NoError(t, err)
	kept, err := readText(t, file, Options{Diffs: true})
	require.NoError(t, err)
	assert.Equal(t, kept.Events, all)
	assert.Equal(t, kept.Problems, s.Problems)
	require.Len(t, all, 6)
	assert.Equal(t, strings.ReplaceAll(big, `\n`, "\n"), all[3].Diff)

	other := strings.ReplaceAll(file, "12:00:02", "12:00:09")
	for name, changed := range map[string]string{"another time": other, "garbage": strings.ReplaceAll(file, `"created_at":"2026-11-20T12:00:02`, `created_at":"2026-11-20T12:00:022`), "shorter": file[:500]} {
		err = s.Each(strings.NewReader(changed), false, func(*Event, *Beats) error { return nil })
		require.ErrorAs(t, err, new(*ChangedError), name)
	}
	stop := errors.New("stop")
	assert.ErrorIs(t, s.Each(strings.NewReader(file), false, func(*Event, *Beats) error { return stop }), stop)
}

func TestALongDiffIsCut(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		diff        string
		most, shown int
		left        int
	}{
		{"a\nb\nc\nd\n", 2, 2, 2}, {"a\nb\nc\nd", 2, 2, 2}, {"a\nb\nc\n", 2, 3, 0}, {"a\nb\n", 0, 2, 0}, {"", 2, 0, 0},
	} {
		lines, left := DiffLines(tc.diff, tc.most)
		n := 0
		for range lines {
			n++
		}
		assert.Equal(t, []int{tc.shown, tc.left}, []int{n, left}, "%q", tc.diff)
	}
}

func TestTheHeartbeatsOfARunAreOneLine(t *testing.T) {
	t.Parallel()
	s := read(t, Options{}, at(0, "started", `{}`), at(30, "heartbeat", `{}`), at(40, "message", `{}`), at(60, "heartbeat", `{}`), at(180, "heartbeat", `{}`), at(181, "completed", `{}`),
		at(1000, "started", `{}`), at(1030, "heartbeat", `{}`), at(1105, "heartbeat", `{}`), at(1110, "waiting", `{}`))
	var shown []string
	require.NoError(t, s.Each(nil, true, func(e *Event, beats *Beats) error {
		text := strings.TrimPrefix(e.Type, "agent.")
		if beats != nil {
			text += fmt.Sprintf(" %d: %s", int(e.At.Sub(noon).Seconds()), beats)
		}
		shown = append(shown, text)
		return nil
	}))
	assert.Equal(t, []string{
		"started", "message", "heartbeat 180: 3 heartbeats, 3 missed, the longest gap 2m0s", "completed", "started", "heartbeat 1105: 2 heartbeats, none missed", "waiting",
	}, shown)
}

func TestFiguresOfASession(t *testing.T) {
	t.Parallel()
	s := StatsOf(read(t, Options{}, at(0, "started", `{}`), at(1, "tool_use", `{"turn":1,"tool":"Bash"}`), at(2, "tool_use", `{"turn":2,"tool":"Bash"}`), at(3, "tool_use", `{"turn":2,"tool":"Edit"}`),
		at(4, "file_edited", `{"file_path":"a","lines_added":1,"lines_removed":2}`), at(5, "file_edited", `{"file_path":"a","lines_added":3,"lines_removed":null,"diff_preview":"x"}`),
		at(6, "error", `{"error":"x"}`), at(7, "tool_completed", `{"is_error":true}`), at(30, "heartbeat", `{}`), at(60, "completed", `{"success":false,"turns":5,"exit_code":1}`)).Events)
	assert.Equal(t, []Count{{"Bash", 2}, {"Edit", 1}}, s.Tools)
	require.Len(t, s.Files, 1)
	assert.Equal(t, 2, s.Files[0].Edits)
	assert.Equal(t, int64(4), *s.Files[0].Added)
	assert.Nil(t, s.Files[0].Removed, "one of the changes does not say")
	assert.Equal(t, []any{10, int64(5), 1, 3, 1, time.Minute}, []any{s.Events, s.Turns, s.Runs, s.Errors, s.Heartbeats.Count, s.Duration()})
	assert.Equal(t, "failed, 5 turns, exit 1", s.End.String())
	assert.Equal(t, []string{"10 events, usual are 44 to 71", "60 s, usual are 567 to 1397", "1 heartbeats, usual are 18 to 45"}, s.Unusual())
}

// TestAUsualRun has the shape of the run that the requirements describe: 26 events of activity and 45 heartbeats.
func TestAUsualRun(t *testing.T) {
	t.Parallel()
	lines := []string{at(0, "started", `{}`)}
	for n := range 45 {
		lines = append(lines, at(30*(n+1), "heartbeat", `{}`))
	}
	for n := range 24 {
		lines = append(lines, at(50*(n+1)+1, "message", `{}`))
	}
	s := StatsOf(read(t, Options{}, append(lines, at(1360, "completed", `{"success":true}`))...).Events)
	assert.Equal(t, 71, s.Events)
	assert.Empty(t, s.Unusual())
	assert.Equal(t, "45 heartbeats, none missed", s.Heartbeats.String())
}

// TestLivesWithoutAnAgentAreCompared: a program without an agent has the events of its sandbox alone; two that ended in
// different ways did not do the same.
func TestLivesWithoutAnAgentAreCompared(t *testing.T) {
	t.Parallel()
	life := func(end string) *Session {
		c := NewCollector(Options{Keys: true})
		for i, e := range []Raw{{Type: "started", Detail: "pid " + end}, {Type: Exited, Detail: end}} {
			e.At = time.Date(2026, 11, 20, 12, 0, i, 0, time.UTC)
			c.Add(e)
		}
		return c.Session()
	}
	same := Compare(life("exit 0"), life("exit 0"))
	assert.True(t, same.Same())
	assert.True(t, same.NoAgents)
	other := Compare(life("exit 0"), life("signal 9"))
	require.NotNil(t, other.Diverge)
	assert.Equal(t, []int{2, 1}, []int{other.Diverge.N, other.Acts.N})
	assert.False(t, Compare(read(t, Options{Keys: true}, at(0, "started", `{}`)), life("exit 0")).NoAgents)
}

func TestTheFirstDifferenceIsFound(t *testing.T) {
	t.Parallel()
	o := Options{Keys: true}
	base := []string{
		at(0, "started", `{"task_id":"1"}`), at(1, "message", `{"turn":1,"content":"hello"}`), at(2, "tool_use", `{"turn":1,"tool":"Bash","tool_use_id":"1","input":{"command":"ls","n":1}}`),
		at(30, "heartbeat", `{}`), at(31, "file_edited", `{"file_path":"a","lines_added":1,"lines_removed":0,"full_diff":"+a"}`), at(40, "completed", `{"success":true,"turns":3,"cost":1}`),
	}
	change := func(i int, line string) []string {
		other := append([]string{}, base...)
		other[i] = line
		return other
	}
	for name, tc := range map[string]struct {
		other   []string
		n, acts int // 0 = the same
	}{
		"ids, times and turns":  {[]string{at(100, "started", `{"task_id":"2"}`), at(101, "message", `{"turn":9,"content":"hello"}`), at(102, "tool_use", `{"input":{"n":1,"command":"ls"},"tool":"Bash","tool_use_id":"7"}`), strings.Replace(base[4], "12:00:31", "12:05:00", 1), at(500, "completed", `{"turns":8,"success":true}`)}, 0, 0},
		"a text":                {change(1, at(1, "message", `{"turn":1,"content":"hallo"}`)), 2, 0},
		"an argument":           {change(2, at(2, "tool_use", `{"tool":"Bash","input":{"command":"ls","n":2}}`)), 3, 1},
		"a diff":                {change(4, at(31, "file_edited", `{"file_path":"a","lines_added":1,"lines_removed":0,"full_diff":"+b"}`)), 4, 2},
		"one that ended before": {base[:5], 5, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Compare(read(t, o, base...), read(t, o, tc.other...))
			n := func(d *Divergence) int {
				if d == nil {
					return 0
				}
				return d.N
			}
			assert.Equal(t, []int{tc.n, tc.acts}, []int{n(c.Diverge), n(c.Acts)})
			assert.Equal(t, tc.n == 0, c.Same())
		})
	}
}

func TestWhatOnlyOneDid(t *testing.T) {
	t.Parallel()
	o := Options{Keys: true}
	a := read(t, o, at(1, "tool_use", `{"tool":"Bash","input":{"command":"go test"}}`), at(2, "file_edited", `{"file_path":"both","lines_added":1}`), at(3, "file_edited", `{"file_path":"same","lines_added":1}`), at(4, "file_edited", `{"file_path":"mine"}`))
	b := read(t, o, at(1, "tool_use", `{"tool":"Read","input":{"file_path":"x"}}`), at(2, "file_edited", `{"file_path":"both","lines_added":2}`), at(3, "file_edited", `{"file_path":"same","lines_added":1}`))
	c := Compare(a, b)
	assert.Equal(t, [2][]string{{"Bash go test"}, {"Read x"}}, c.OnlyTools)
	assert.Equal(t, [2][]string{{"mine"}, {}}, c.OnlyFiles)
	require.Len(t, c.Files, 1)
	assert.Equal(t, "both", c.Files[0].Path)
}

func TestTimesAsTheSourceWritesThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		"2026-11-20T12:00:00+00:00": noon, "2026-11-20T12:00:00": noon, "2026-11-20 12:00:00": noon, "2026-11-20T13:00:00+01:00": noon,
	} {
		got, ok := ParseTime(text)
		assert.True(t, ok && got.Equal(want), text)
	}
	for _, number := range []string{"1795176000", "1795176000000", "1795176000000000", "1795176000000000000", `"1795176000.0"`} {
		assert.Equal(t, noon, object([]byte(`{"at":`+number+`}`)).moment("at"), number)
	}
	for _, text := range []string{"", "noon", "99999-01-01T00:00:00Z"} {
		_, ok := ParseTime(text)
		assert.False(t, ok, text)
	}
}

// FuzzRead: whatever a file has, each of its lines is an event, empty, or counted.
func FuzzRead(f *testing.F) {
	f.Add(at(0, "tool_use", `{"tool":"Bash","input":{"command":"ls"}}`) + "\n{\n")
	f.Add(`{"event_type":"agent.file_edited","event_data":{"full_diff":[1],"file_path":{}},"created_at":1e300}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := readText(t, text, Options{Keys: true, Diffs: true})
		require.NoError(t, err)
		filled := 0
		for line := range strings.SplitSeq(text, "\n") {
			if strings.TrimSpace(line) != "" {
				filled++
			}
		}
		require.LessOrEqual(t, s.Lost(), filled)
		StatsOf(s.Events)
		Compare(s, s)
		_, again, err := eachOf(t, text)
		require.NoError(t, err)
		for i := range s.Events {
			s.Events[i].keys = nil
		}
		require.Equal(t, s.Events, again)
	})
}

// TestDiffsThatAreKeptAreBounded: of a stream; the events stay, and say what is left out.
func TestDiffsThatAreKeptAreBounded(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	diff := strings.Repeat("+", size)
	var lines []string
	for i := range MaxDiffs/size + 2 {
		lines = append(lines, at(i, "file_edited", `{"file_path":"a.go","full_diff":"`+diff+`"}`))
	}
	s := read(t, Options{Diffs: true}, lines...)
	require.Len(t, s.Events, len(lines))
	assert.Equal(t, 2, s.LeftOut)
	kept, last := s.Events[0], s.Events[len(lines)-1]
	assert.Equal(t, []any{size, false}, []any{len(kept.Diff), kept.DiffLeftOut})
	assert.Equal(t, []any{"", true}, []any{last.Diff, last.DiffLeftOut})
	assert.Contains(t, DiffHead(&last), "left out")
	assert.Contains(t, strings.Join(s.Warnings(), "\n"), "diffs beyond 64 MiB are left out: 2")
	assert.Zero(t, read(t, Options{}, lines...).LeftOut)
}
