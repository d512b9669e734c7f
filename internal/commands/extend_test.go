package commands

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/testkit/fake"
)

// endsIn is a running sandbox that ends so long after noon; 0 = no time ends it.
func endsIn(id string, left time.Duration) fake.Seed {
	s := running(id, time.Hour)
	if left > 0 {
		s.Sandbox.ExpiresAt = noon.Add(left)
	}
	return s
}

func TestExtendShowsBothEnds(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"extend prod/aaaa --ttl 90m":                        "prod/aaaa: its end: 2026-11-20T12:10:00Z -> 2026-11-20T13:30:00Z, 1h30m left\n",
		"extend aaaa --until 2026-11-20T18:00Z":             "prod/aaaa: its end: 2026-11-20T12:10:00Z -> 2026-11-20T18:00:00Z, 6h left\n",
		"extend aaaa --until 18:00":                         "prod/aaaa: its end: 2026-11-20T12:10:00Z -> 2026-11-20T18:00:00Z, 6h left\n",
		"extend aaaa --until 2026-11-21":                    "prod/aaaa: its end: 2026-11-20T12:10:00Z -> 2026-11-21T00:00:00Z, 12h left\n",
		"extend aaaa --until 2026-11-20T19:00:00+01:00":     "prod/aaaa: its end: 2026-11-20T12:10:00Z -> 2026-11-20T18:00:00Z, 6h left\n",
		"extend aaaa bbbb --ttl 1h -o name":                 "prod/aaaa\nprod/bbbb\n",
		"extend aaaa --ttl 1h -o csv --columns ref,until":   "ref,until\nprod/aaaa,2026-11-20T13:00:00Z\n",
		"extend prod/aaaa prod/idle --ttl 1h -o jq=.counts": "",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			idle := endsIn("idle", time.Minute)
			idle.Sandbox.IdleStop = 15 * time.Minute
			b, _ := oneFake(endsIn("aaaa", 10*time.Minute), endsIn("bbbb", time.Minute), idle)
			r := b.run(t, line)
			assert.Equal(t, 0, r.code, r.stderr)
			if says != "" {
				assert.Equal(t, says, r.stdout)
			}
		})
	}
	b, _ := oneFake(endsIn("aaaa", 10*time.Minute))
	item := b.run(t, "extend aaaa --ttl 1h -o json").list(t, "items")[0]
	assert.Equal(t, map[string]any{
		"ref": "prod/aaaa", "outcome": "verified", "before": "2026-11-20T12:10:00Z", "until": "2026-11-20T13:00:00Z", "asked": "2026-11-20T13:00:00Z",
		"remaining_seconds": 3600.0, "idle_stop_seconds": nil, "reason": nil,
	}, item)
}

func TestExtendFails(t *testing.T) {
	t.Parallel()
	down := fault.New(fault.KindUnavailable, "503")
	for name, tc := range map[string]struct {
		line   string
		lie    fake.Lie
		faults []fake.Fault
		code   int
		stderr string
		sent   int
	}{
		"it would be shorter":     {line: "extend aaaa --ttl 5m", code: 11, stderr: "it ends at 2026-11-20T12:10:00Z, and 2026-11-20T12:05:00Z is not later"},
		"it would be the same":    {line: "extend aaaa --until 12:10", code: 11, stderr: "is not later"},
		"no time ends it":         {line: "extend free --ttl 1h", code: 11, stderr: "no end of it is known"},
		"it is idle that ends it": {line: "extend idle --ttl 1h", code: 11, stderr: "it stops after 15m without activity"},
		"it is paused":            {line: "extend rest --ttl 1h", code: 11, stderr: "it is paused, and only what runs is extended"},
		"it has ended":            {line: "extend prod/done --ttl 1h", code: 6, stderr: "it has ended: it is terminated"},
		"it is unknown":           {line: "extend prod/nope --ttl 1h", code: 5, stderr: "nope"},
		"one of two":              {line: "extend prod/aaaa prod/nope --ttl 1h", code: 3, stderr: "nope", sent: 1},
		"one of two is not later": {line: "extend prod/aaaa prod/bbbb --ttl 15m", code: 3, stderr: "bbbb: it ends at", sent: 1},
		"refused": {
			line: "extend aaaa --ttl 1h", faults: []fake.Fault{{Op: fake.OpExtend, Err: fault.New(fault.KindRefused, "beyond the plan")}}, code: 11,
			stderr: "beyond the plan", sent: 1,
		},
		"accepted without effect": {
			line: "extend aaaa --ttl 1h", faults: []fake.Fault{{Op: fake.OpExtend, Skip: true}}, code: 8,
			stderr: "the request was accepted, and another read shows the end as before: 2026-11-20T12:10:00Z", sent: 1,
		},
		"shortened": {
			line: "extend aaaa --ttl 1h", lie: fake.LieShortens, code: 8,
			stderr: "another read shows an EARLIER end: 2026-11-20T12:00:01Z, and before that 2026-11-20T12:10:00Z", sent: 1,
		},
		"less than asked": {
			line: "extend aaaa --ttl 5h", code: 3,
			stderr: "its provider gave less than was asked: it ends at 2026-11-20T15:00:00Z instead of 2026-11-20T17:00:00Z", sent: 1,
		},
		"no read after the request": {
			line: "extend prod/aaaa --ttl 1h", faults: []fake.Fault{{Op: fake.OpGet, After: 2, Err: down}}, code: 8,
			stderr: "the read after that failed", sent: 1,
		},
		"answer lost, moved": {line: "extend aaaa --ttl 1h", faults: []fake.Fault{{Op: fake.OpExtend, Late: true, Err: down}}, sent: 1},
		"answer lost, not moved": {
			line: "extend aaaa --ttl 1h", faults: []fake.Fault{{Op: fake.OpExtend, Late: true, Skip: true, Err: down}}, code: 7,
			stderr: "another read shows that its end was not moved", sent: 1,
		},
		"answer lost, and no read": {
			line: "extend prod/aaaa --ttl 1h", faults: []fake.Fault{{Op: fake.OpExtend, Late: true, Err: down}, {Op: fake.OpGet, After: 2, Err: down}}, code: 7,
			stderr: "whether its end was moved is not known", sent: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			idle, rest := endsIn("idle", 0), endsIn("rest", time.Minute)
			idle.Sandbox.IdleStop, rest.Sandbox.State = 15*time.Minute, sandbox.StatePaused
			p := fake.New(fake.Options{Name: "prod", Now: atNoon, LongestLife: 3 * time.Hour})
			p.Add(endsIn("aaaa", 10*time.Minute), endsIn("bbbb", 20*time.Minute), endsIn("free", 0), idle, rest, endedSeed("done", sandbox.StateTerminated, nil))
			b := newBench(p)
			p.Break(tc.faults...)
			if tc.lie != "" {
				p.Tell(tc.lie)
			}
			r := b.run(t, tc.line)
			assert.Equal(t, tc.code, r.code, r.stderr)
			assert.Contains(t, r.stderr, tc.stderr)
			assert.Len(t, p.Calls(fake.OpExtend), tc.sent, "a request is sent once, or not at all")
		})
	}
}

func TestExtendWhereNoEndCanBeMoved(t *testing.T) {
	t.Parallel()
	b, p := oneFake(endsIn("aaaa", time.Minute))
	b.members[0] = p.Only("labels")
	r := b.run(t, "extend prod/aaaa --ttl 1h")
	assert.Equal(t, 9, r.code, r.stderr)
	assert.Contains(t, r.stderr, "has no extend")
}

// TestExtendIsPlanned: a dry run sends nothing, and says of each what would become of it.
func TestExtendIsPlanned(t *testing.T) {
	t.Parallel()
	b, p := oneFake(endsIn("aaaa", time.Minute), endsIn("bbbb", 2*time.Hour))
	r := b.run(t, "extend prod/aaaa prod/bbbb --ttl 1h --dry-run -o json")
	assert.Equal(t, 0, r.code, r.stderr)
	plan, _ := r.object(t)["plan"].(map[string]any)
	selected, _ := plan["selected"].([]any)
	kept, _ := plan["kept"].([]any)
	require.Len(t, selected, 1)
	require.Len(t, kept, 1)
	assert.Equal(t, map[string]any{"ref": "prod/aaaa", "reason": "its end: 2026-11-20T12:01:00Z -> 2026-11-20T13:00:00Z"}, selected[0])
	assert.Contains(t, kept[0].(map[string]any)["reason"], "is not later") //nolint:forcetypeassert,errcheck // else the test fails
	r = b.run(t, "extend prod/aaaa prod/bbbb --ttl 1h --dry-run")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stdout, "Would extend: 1")
	assert.Empty(t, p.Calls(fake.OpExtend))
	assert.Equal(t, 2, b.run(t, "extend prod/aaaa --ttl 1h --dry-run -o csv").code)
}

// TestExtendIsGuarded as an end is: what is extended by mistake costs money.
func TestExtendIsGuarded(t *testing.T) {
	t.Parallel()
	six := "extend a00001 a00002 a00003 a00004 a00005 a00006 --ttl 1h"
	for name, tc := range map[string]struct {
		line, config, stdin, env string
		tty                      bool
		code, sent               int
	}{
		"six without a terminal":           {line: six, code: 11},
		"six, allowed":                     {line: six + " --yes", sent: 6},
		"six, counted":                     {line: six, tty: true, stdin: "6\n", sent: 6},
		"six, not counted":                 {line: six, tty: true, stdin: "y\n", code: 11},
		"production, one whole reference":  {line: "extend prod/a00001 --ttl 1h", config: spawnConfig + "production: [prod]\n", sent: 1},
		"production, a bare word":          {line: "extend a00001 --ttl 1h", config: spawnConfig + "production: [prod]\n", code: 11},
		"production, named":                {line: "extend a00001 --ttl 1h --production prod", config: spawnConfig + "production: [prod]\n", sent: 1},
		"production, a pipe":               {line: "extend - --ttl 1h", config: spawnConfig + "production: [prod]\n", stdin: "prod/a00001\n", code: 11},
		"production, its name is typed":    {line: "extend a00001 --ttl 1h", config: spawnConfig + "production: [prod]\n", tty: true, stdin: "prod\n", sent: 1},
		"protected ones may live longer":   {line: "extend prod/a00001 --ttl 1h", config: "protect: {ids: [prod/a00001]}\n", sent: 1},
		"those of nobody that were named":  {line: "extend prod/a00001 --ttl 1h", config: "{}\n", sent: 1},
		"what is not a production profile": {line: "extend a00001 --ttl 1h --production nope", code: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seeds []fake.Seed
			for _, id := range []string{"a00001", "a00002", "a00003", "a00004", "a00005", "a00006"} {
				seeds = append(seeds, endsIn(id, time.Minute))
			}
			b, p := oneFake(seeds...)
			if tc.config != "" {
				b.configure(t, tc.config)
			}
			b.tty, b.stdin = tc.tty, tc.stdin
			r := b.run(t, tc.line)
			assert.Equal(t, tc.code, r.code, r.stderr)
			assert.Len(t, p.Calls(fake.OpExtend), tc.sent)
		})
	}
}

// TestWhatATaskWorksInIsNotExtended: the task ends its sandbox itself, and its record knows when that ends at the latest.
func TestWhatATaskWorksInIsNotExtended(t *testing.T) {
	t.Parallel()
	b, _ := leasedBench(t, "t-work")
	r := b.run(t, "extend prod/aaaa --ttl 1h")
	assert.Equal(t, 11, r.code, r.stderr)
	assert.Contains(t, r.stderr, "it ends with its task, whatever its limit: task t-work is at work in it (ann)")

	b, p := oneFake(endsIn("aaaa", time.Minute))
	list := task.KeepList{Store: b.kept(atNoon)}
	require.NoError(t, list.Keep(t.Context(), task.Kept{Ref: sandbox.Ref{Provider: "prod", ID: "aaaa"}, ExpiresAt: noon.Add(time.Hour)}, "t-kept"))
	r = b.run(t, "extend prod/aaaa --ttl 2h")
	assert.Equal(t, 11, r.code, r.stderr)
	assert.Contains(t, r.stderr, "a task has kept it until 2026-11-20T13:00:00Z")
	assert.Empty(t, p.Calls(fake.OpExtend))
}

// TestExtensionsAreOnRecord: who asked for which end, and what came of it. They are no ends of a sandbox.
func TestExtensionsAreOnRecord(t *testing.T) {
	t.Parallel()
	ended := endsIn("cccc", time.Minute)
	ended.Sandbox.State = sandbox.StateFailed
	b, p := oneFake(endsIn("aaaa", time.Minute), endsIn("bbbb", time.Minute), ended)
	require.Equal(t, 0, b.run(t, "extend prod/aaaa --ttl 1h").code)
	require.Equal(t, 6, b.run(t, "extend prod/cccc --ttl 1h").code)
	p.Break(fake.Fault{Op: fake.OpExtend, Skip: true})
	require.Equal(t, 8, b.run(t, "extend prod/bbbb --ttl 1h").code)
	require.Equal(t, 11, b.run(t, "extend prod/bbbb --ttl 1s").code)
	items := b.run(t, "audit --verb extend -o json").list(t, "items")
	require.Len(t, items, 2, "what was refused was not requested")
	outcomes := map[any]any{}
	for _, i := range items {
		outcomes[i["ref"]] = i["outcome"]
		assert.Equal(t, "extend", i["action"])
		assert.Equal(t, "its end: 2026-11-20T12:01:00Z -> 2026-11-20T13:00:00Z", i["reason"])
	}
	assert.Equal(t, map[any]any{"prod/aaaa": "verified", "prod/bbbb": "accepted"}, outcomes)
	r := b.run(t, "audit")
	assert.Contains(t, r.stdout, "\textend\t")
	assert.NotContains(t, b.run(t, "inspect prod/nope").stderr, "terminated")
}

// rushed is a provider of which another client moves the end between two reads.
type rushed struct {
	*fake.Provider

	by time.Duration
}

func (r rushed) Extend(ctx context.Context, id string, until time.Time) (sandbox.Sandbox, error) {
	r.Change(id, func(s *sandbox.Sandbox) { s.ExpiresAt = noon.Add(r.by) })
	return r.Provider.Extend(ctx, id, until)
}

// TestExtendReadsRightBeforeItsRequest: what another client has given meanwhile is not taken away.
func TestExtendReadsRightBeforeItsRequest(t *testing.T) {
	t.Parallel()
	b, p := oneFake(endsIn("aaaa", time.Minute))
	b.members[0] = rushed{p, 2 * time.Hour}
	r := b.run(t, "extend prod/aaaa --ttl 1h")
	assert.Equal(t, 11, r.code, r.stderr)
	assert.Contains(t, r.stderr, "it ends at 2026-11-20T14:00:00Z")
	now, err := p.Get(t.Context(), "aaaa")
	require.NoError(t, err)
	assert.Equal(t, noon.Add(2*time.Hour), now.ExpiresAt)
	assert.Empty(t, p.Calls(fake.OpExtend))
}

// TestCheckExtensionIsTheOneRule: only what runs is extended.
func TestCheckExtensionIsTheOneRule(t *testing.T) {
	t.Parallel()
	s := endsIn("aaaa", time.Minute).Sandbox
	require.NoError(t, providers.CheckExtension(s, noon.Add(time.Hour)))
	for _, state := range []sandbox.State{sandbox.StateProvisioning, sandbox.StatePaused, sandbox.StateStopped, sandbox.StateTerminating, sandbox.StateUnknown} {
		s.State = state
		assert.Equal(t, fault.KindRefused, fault.KindOf(providers.CheckExtension(s, noon.Add(time.Hour))), state)
	}
}
