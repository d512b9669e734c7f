package commands

import (
	"context"
	"encoding/csv"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/omoiostest"
)

func TestInspectExits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line string
		code int
		says string // on stderr
	}{
		"by reference":       {"inspect prod/calm0001", 0, ""},
		"by id":              {"inspect calm0001", 0, ""},
		"by prefix":          {"inspect calm", 0, ""},
		"json":               {"inspect prod/calm0001 -o json", 0, ""},
		"ndjson":             {"inspect prod/calm0001 -o ndjson", 0, ""},
		"yaml":               {"inspect prod/calm0001 -o yaml", 0, ""},
		"csv":                {"inspect prod/calm0001 -o csv", 0, ""},
		"name":               {"inspect prod/calm0001 -o name", 0, ""},
		"columns":            {"inspect prod/calm0001 --columns ref,usage", 0, ""},
		"ended":              {"inspect prod/oomd0001", 0, ""},
		"unknown":            {"inspect prod/nope0001", 5, "no such sandbox"},
		"unknown word":       {"inspect nope0001", 5, "no sandbox matches"},
		"ambiguous":          {"inspect twin", 2, "matches 2 sandboxes"},
		"unknown profile":    {"inspect prd/calm0001", 2, "did you mean prod?"},
		"ill-formed":         {"inspect prod/../x", 2, "not a sandbox reference"},
		"no sandbox":         {"inspect", 2, "no REF was given"},
		"unknown column":     {"inspect prod/calm0001 --columns usge", 2, "did you mean usage?"},
		"no check":           {"inspect prod/calm0001 -o nagios", 2, "nagios"},
		"nothing on stdin":   {"inspect -", 2, "no reference was given"},
		"empty word":         {"inspect --provider other calm0001", 2, "other"},
		"limit that is none": {"inspect prod/calm0001 --timeout 5", 2, "the unit is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, _ := oneFake(calm(), oomed(), running("twin0001", time.Minute), running("twin0002", time.Minute))
				r := b.run(t, tc.line)
				require.Equal(t, tc.code, r.code, r.stderr)
				assert.Contains(t, r.stderr, tc.says)
				assert.Equal(t, tc.code == 0, r.stderr == "", r.stderr)
				assert.Equal(t, tc.code == 0, r.stdout != "", r.stdout)
			})
		})
	}
}

func TestInspectReadsItsReferenceFromStdin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(calm(), oomed())
		b.stdin = "# the failed one\nprod/oomd0001\n"
		assert.Equal(t, "prod/oomd0001\n", b.run(t, "inspect - -o name").stdout)
		b.stdin = "prod/oomd0001\nprod/calm0001\n"
		assert.Equal(t, "prod/oomd0001\nprod/calm0001\n", b.run(t, "inspect - -o name").stdout)
	})
}

func TestInspectShowsEachPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(loop(), oomed())
		item := b.run(t, "inspect prod/loop0001 -o json").item(t)
		assert.Nil(t, item["exit"], "it runs")
		part := func(item map[string]any, key string) map[string]any {
			object, ok := item[key].(map[string]any)
			require.True(t, ok, key)
			return object
		}
		first := func(list any) map[string]any {
			items, ok := list.([]any)
			require.True(t, ok)
			require.NotEmpty(t, items)
			object, ok := items[0].(map[string]any)
			require.True(t, ok)
			return object
		}
		assert.Equal(t, "busy_loop", first(item["suspicions"])["cause"])
		assert.InEpsilon(t, 100.0, part(item, "usage")["cpu_percent"], 0.01)

		ended := b.run(t, "inspect prod/oomd0001 -o json").item(t)
		exit := part(ended, "exit")
		assert.InEpsilon(t, 137.0, exit["code"], 0.01)
		assert.Equal(t, []any{"oom", "certain", "SIGKILL"}, []any{exit["cause"], exit["confidence"], exit["signal"]})
		assert.Equal(t, map[string]any{"what": "oom_kill", "value": "1", "source": "memory.events", "at": "2026-11-20T11:59:00Z"}, first(exit["evidence"]))
		assert.Nil(t, part(ended, "usage")["cpu_percent"], "one sample tells no rate")
		assert.Equal(t, "oom", first(ended["suspicions"])["cause"])
	})
}

func TestInspectJudgesByAllThatItSees(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(loop())
		assert.Equal(t, "true", b.run(t, "inspect prod/loop0001 -o json").item(t)["stuck"], "a full core excuses silence only for so long")
		p.Write("loop0001", calm().Logs...)
		item := b.run(t, "inspect prod/loop0001 -o json").item(t)
		assert.Equal(t, "false", item["stuck"], "it has just written")
		assert.Equal(t, "shows_life", item["stuck_reason"])
	})
}

func TestInspectSuspectsNobodyOnLess(t *testing.T) {
	t.Parallel()
	seed := running("mute0001", 5*time.Minute)
	seed.Logs = []sandbox.LogLine{{At: noon.Add(-4 * time.Minute), Stream: "stdout", Text: "agent started"}}
	p := fake.New(fake.Options{Name: "prod", Now: atNoon})
	p.Add(seed)
	b := newBench()
	b.members = []providers.Provider{p.Only("logs")}
	list, ok := b.run(t, "inspect prod/mute0001 -o json").item(t)["suspicions"].([]any)
	require.True(t, ok)
	require.Len(t, list, 1, "that it is silent speaks for a hang too, but too little")
	first, ok := list[0].(map[string]any)
	require.True(t, ok)
	assert.Equal(t, []any{"silent", "hint"}, []any{first["cause"], first["confidence"]})
}

func TestInspectShowsTheRestBesideAPartThatFails(t *testing.T) {
	t.Parallel()
	for op, key := range map[fake.Op]string{fake.OpUsage: "usage", fake.OpProbe: "health", fake.OpEvents: "timeline", fake.OpLogs: ""} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, p := oneFake(calm())
				p.Break(fake.Fault{Op: op, Err: fault.New(fault.KindUnavailable, "503")})
				r := b.run(t, "inspect prod/calm0001 -o json")
				assert.Equal(t, 3, r.code)
				assert.Empty(t, r.stderr, "the document holds the error")
				errs := r.list(t, "errors")
				require.Len(t, errs, 1)
				assert.Equal(t, []any{"prod", "unavailable"}, []any{errs[0]["provider"], errs[0]["kind"]})
				item := r.item(t)
				for _, part := range []string{"usage", "health", "timeline"} {
					assert.Equal(t, part == key, item[part] == nil, part)
				}
				page := b.run(t, "inspect prod/calm0001 -v")
				assert.Equal(t, 3, page.code)
				assert.Contains(t, page.stdout, "could not be read: 503")
				assert.Contains(t, page.stderr, "503")
			})
		})
	}
}

func TestInspectTellsAMissingAbilityFromNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, p := oneFake(calm())
		b := newBench()
		b.members = []providers.Provider{p.Bare()}
		r := b.run(t, "inspect prod/calm0001 -o json")
		assert.Equal(t, 0, r.code, r.stdout)
		assert.Empty(t, r.list(t, "errors"))
		for _, part := range []string{"usage", "health", "timeline"} {
			assert.Nil(t, r.item(t)[part], part)
		}
		page := b.run(t, "inspect prod/calm0001 -v").stdout
		for _, ability := range []string{"usage", "probe", "events", "logs"} {
			assert.Contains(t, page, "cannot be known: a provider of type fake has no "+ability)
		}
	})
}

func TestInspectOfWhatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod", Now: atNoon, After: fake.AfterGone})
		p.Add(running("aaaa0001", time.Minute), running("bbbb0001", time.Minute))
		require.NoError(t, p.Terminate(t.Context(), "aaaa0001", providers.TerminateOptions{}))
		r := newBench(p).run(t, "inspect prod/aaaa0001 -o json")
		assert.Equal(t, 6, r.code)
		assert.Nil(t, r.object(t)["item"])
		assert.Equal(t, "gone", r.list(t, "errors")[0]["kind"])

		p.Break(fake.Fault{Op: fake.OpGet, ID: "bbbb0001", Err: fault.New(fault.KindNotFound, "no such sandbox")})
		assert.Equal(t, 5, newBench(p).run(t, "inspect bbbb0001").code, "listed, and gone when it was read")
		p.Mend()
		p.Break(fake.Fault{Op: fake.OpGet, ID: "bbbb0001", Err: fault.New(fault.KindGone, "410")})
		assert.Equal(t, 6, newBench(p).run(t, "inspect bbbb0001").code)
		p.Mend()
		p.Break(fake.Fault{Op: fake.OpGet, ID: "bbbb0001", Err: fault.New(fault.KindUnavailable, "503")})
		r = newBench(p).run(t, "inspect bbbb0001 -o json")
		assert.Equal(t, 3, r.code, "the listing knows it, its record cannot be read")
		assert.Equal(t, "prod/bbbb0001", r.item(t)["ref"])
	})
}

func TestInspectWhenAllFails(t *testing.T) {
	t.Parallel()
	b, p := oneFake(calm())
	p.Break(fake.Fault{Op: fake.OpGet, Err: fault.New(fault.KindAuth, "401")})
	r := b.run(t, "inspect prod/calm0001 -o json")
	assert.Equal(t, 4, r.code)
	assert.Nil(t, r.object(t)["item"])
	require.Len(t, r.list(t, "errors"), 1)

	b.adjust = func(d *Deps) { d.Fleet = failingFleet(fault.New(fault.KindUnavailable, "no providers")) }
	r = b.run(t, "inspect prod/calm0001 -o json")
	assert.Equal(t, 7, r.code)
	assert.Nil(t, r.object(t)["item"])
}

func TestInspectInterrupted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		context func(context.Context) context.Context
		item    bool
	}{
		"before anything is known": {halt, false},
		"between two samples":      {haltedAfter(t, 100*time.Millisecond), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := oneFake(calm())
			b.context, b.sample = tc.context, time.Second
			r := b.run(t, "inspect prod/calm0001 -o json")
			assert.Equal(t, 130, r.code)
			assert.Equal(t, true, r.object(t)["interrupted"])
			assert.Len(t, r.list(t, "errors"), 1, "it is said once")
			assert.Equal(t, tc.item, r.object(t)["item"] != nil)
		})
	}
}

func TestInspectUnderATimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(calm())
		p.Break(fake.Fault{Op: fake.OpProbe, Hang: true})
		r := b.run(t, "inspect prod/calm0001 --timeout 2s -o json")
		assert.Equal(t, 124, r.code)
		assert.Contains(t, r.list(t, "errors")[0]["message"], "--timeout 2s")
		assert.Equal(t, "prod/calm0001", r.item(t)["ref"], "what was seen is shown")
	})
}

func TestInspectPages(t *testing.T) {
	t.Parallel()
	for _, seed := range []fake.Seed{loop(), oomed(), calm()} {
		t.Run(seed.Sandbox.ID, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, _ := oneFake(seed)
				b.tty, b.width, b.env = true, 80, []string{"NO_COLOR=1"}
				r := b.run(t, "inspect prod/"+seed.Sandbox.ID)
				require.Equal(t, 0, r.code, r.stderr)
				golden(t, "inspect-"+seed.Sandbox.ID, r.stdout)
				assert.LessOrEqual(t, strings.Count(r.stdout, "\n"), 24, "one screen")
				golden(t, "inspect-v-"+seed.Sandbox.ID, b.run(t, "inspect -v prod/"+seed.Sandbox.ID).stdout)
				for line := range strings.Lines(r.stdout) {
					assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, line)
				}
			})
		})
	}
}

// TestOneSandboxHasOnePage: inspect and diagnose print one page of one judgement, also where the profile
// ails, where a source fails, and of what is gone.
func TestOneSandboxHasOnePage(t *testing.T) {
	t.Parallel()
	starts := func() fake.Seed {
		seed := running("start001", time.Hour)
		seed.Sandbox.State = sandbox.StateProvisioning
		return seed
	}
	for name, tc := range map[string]struct {
		seed   func() fake.Seed
		breaks fake.Op // that is not found; "" = none
		cause  any     // the first by its id
	}{
		"a busy loop":       {loop, "", "infinite_loop"},
		"out of memory":     {oomed, "", "exit"},
		"at work":           {calm, "", nil},
		"the quota is full": {starts, "", "resource_exhaustion"},
		"a part is gone":    {loop, fake.OpUsage, "infinite_loop"},
		"only on record":    {loop, fake.OpGet, "infinite_loop"},
	} {
		run := func(t *testing.T, line string) (r result) {
			t.Helper()
			synctest.Test(t, func(t *testing.T) { // each begins at the same time
				p := fake.New(fake.Options{Name: "prod", Now: atNoon, Quotas: []providers.Quota{{Name: "sandboxes", Used: new(100.0), Limit: new(100.0)}}})
				p.Add(tc.seed())
				if tc.breaks != "" {
					p.Break(fake.Fault{Op: tc.breaks, Err: fault.New(fault.KindNotFound, "404")})
				}
				r = newBench(p).run(t, line)
			})
			return r
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ref := " prod/" + tc.seed().Sandbox.ID
			for _, flags := range []string{"", " -v"} {
				assert.Equal(t, run(t, "inspect"+ref+flags).stdout, run(t, "diagnose"+ref+flags).stdout)
			}
			inspected, diagnosed := run(t, "inspect"+ref+" -o json").item(t), run(t, "diagnose"+ref+" -o json").item(t)
			for _, key := range []string{"causes", "flags"} {
				assert.Equal(t, diagnosed[key], inspected[key])
			}
			if causes := itemsOf(inspected, "causes"); tc.cause == nil {
				assert.Empty(t, causes)
			} else if assert.NotEmpty(t, causes) {
				assert.Equal(t, tc.cause, causes[0]["id"])
			}
		})
	}
}

// TestInspectWaitsForNoListing: one sandbox is shown although its profile cannot be listed.
func TestInspectWaitsForNoListing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(loop())
		p.Break(fake.Fault{Op: fake.OpList, Hang: true}, fake.Fault{Op: fake.OpStats, Hang: true}, fake.Fault{Op: fake.OpQuota, Hang: true})
		began := time.Now()
		r := b.run(t, "inspect prod/loop0001 -o json")
		assert.Equal(t, 0, r.code)
		assert.Equal(t, "busy_loop", r.item(t)["cause"])
		assert.Less(t, time.Since(began), 15*time.Second)
	})
}

func TestInspectShowsNoEscapesOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(loop())
		b.tty, b.env = true, []string{"NO_COLOR=1"}
		for _, line := range []string{"", "-o json", "-o yaml", "-o csv", "-o ndjson", "-o wide", "--columns name,labels"} {
			r := b.run(t, "inspect prod/loop0001 "+line)
			require.Equal(t, 0, r.code, r.stderr)
			for _, bad := range []string{"\x1b", "\x07"} {
				assert.NotContains(t, r.stdout+r.stderr, bad, line)
			}
			assert.Contains(t, r.stdout, "crawler", line)
		}
	})
}

func TestInspectInOneRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(calm())
		rows, err := csv.NewReader(strings.NewReader(b.run(t, "inspect calm0001 -o csv --columns ref,state,exit,limits").stdout)).ReadAll()
		require.NoError(t, err)
		require.Len(t, rows, 2)
		assert.Equal(t, []string{"ref", "state", "exit", "limits"}, rows[0])
		assert.Equal(t, []string{"prod/calm0001", "running", ""}, rows[1][:3])
	})
}

// TestThePageOfTheDashboardHasTheTimeline: its newest lines, in the words of `sbx events`; inspect alone has none.
func TestThePageOfTheDashboardHasTheTimeline(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "timeline", func(t *testing.T) {
		f := newFollowed(t, "", "")
		assert.NotContains(t, f.run(t, "inspect prod/aaaa").stdout, "Timeline")
		page := func() string {
			source, err := f.deps(t).newDashboardSource(t.Context())
			require.NoError(t, err)
			text, err := source.Page(t.Context(), "inspect", sandbox.Ref{Provider: "prod", ID: "aaaa"}, 100)
			require.NoError(t, err)
			_, timeline, found := strings.Cut(text, "Timeline\n")
			require.True(t, found, text)
			return timeline
		}
		assert.Regexp(t, `(?s)^  AT +EVENT +DETAIL\n.*\n  2026-11-20 12:00:00  created  -\n  2026-11-20 12:00:00  started  -\n$`, page())

		for i := range 150 {
			at := noon.Add(time.Duration(i+1) * time.Second)
			f.omoi.Add(omoiostest.Event{Sandbox: agentBox, Type: "agent.tool_use", At: at, Data: map[string]any{"tool": "Bash", "input": map[string]any{"command": fmt.Sprintf("step %d", i)}}},
				omoiostest.Event{Sandbox: agentBox, Type: "agent.heartbeat", At: at})
		}
		text := page()
		assert.Contains(t, text, "\n  2026-11-20 12:02:30  tool_use   Bash step 149\n  2026-11-20 12:02:30  heartbeat  150 heartbeats, none missed\n")
		assert.Contains(t, text, "54 earlier lines are left out; `sbx events prod/aaaa` has all")
		assert.NotContains(t, text, "Bash step 50\n")
		assert.Contains(t, text, "Bash step 51\n")
	})
}

// TestInspectAndEventsSayTheSame of each event of an agent: its time, its type and its text.
func TestInspectAndEventsSayTheSame(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "same", func(t *testing.T) {
		f := newFollowed(t, "", "")
		for i, data := range []map[string]any{
			{"tool": "Bash", "tool_response": map[string]any{"stdout": "ok"}, "duration_ms": 1500}, {"file_path": "a.go", "full_diff": "+x\n"}, {"content": []any{map[string]any{"text": strings.Repeat("long ", 99)}}},
		} {
			kind := []string{"agent.tool_completed", "agent.file_edited", "agent.assistant_message"}[i]
			f.omoi.Add(omoiostest.Event{Sandbox: agentBox, Type: kind, At: noon.Add(time.Duration(i) * time.Minute), Data: data})
		}
		var listed, timeline [][3]any
		for _, e := range f.run(t, "events prod/aaaa -o json").list(t, "items") {
			listed = append(listed, [3]any{e["at"], e["type"], e["what"]})
		}
		entries, _ := f.run(t, "inspect prod/aaaa -o json").item(t)["timeline"].([]any)
		for _, entry := range entries {
			e, _ := entry.(map[string]any)
			timeline = append(timeline, [3]any{e["at"], e["event"], e["detail"]})
		}
		assert.Len(t, listed, 6)
		assert.ElementsMatch(t, listed, timeline)
		assert.Contains(t, listed, [3]any{"2026-11-20T12:00:00Z", "agent.tool_completed", "Bash -> ok (1.5s)"})
	})
}
