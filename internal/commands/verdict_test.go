package commands

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/fake"
	"sbx/internal/views"
)

// causesFleet is a fleet with one sandbox of each cause, all of them old but the last, and
// what every verb has to say of it.
func causesFleet() (*fake.Provider, map[string][2]any) {
	p := fake.New(fake.Options{Name: "local", Type: "local"})
	now := time.Now()
	old := func(id string, silence time.Duration, use func(sandbox.Usage, float64) sandbox.Usage) fake.Seed {
		s := sandbox.Sandbox{
			ID: id, CreatedAt: now.Add(-time.Hour), StartedAt: now.Add(-time.Hour), TaskID: "t-" + id, LastActivityAt: now.Add(-silence),
			ActivityBasis: sandbox.BasisOutput, Labels: map[string]string{sandbox.LabelOwner: "sbx"}, Limits: sandbox.Limits{MemoryBytes: new(int64(512 * sandbox.MiB))},
		}
		return fake.Seed{Sandbox: s, Usage: func(at time.Time) sandbox.Usage {
			u := sandbox.Usage{At: at, Source: "cgroup2", MemoryBytes: new(int64(100 * sandbox.MiB)), MemoryLimitBytes: s.Limits.MemoryBytes, Operations: new(int64(0))}
			return use(u, at.Sub(now).Seconds())
		}}
	}
	cpu := func(cores float64, waits string) func(sandbox.Usage, float64) sandbox.Usage {
		return func(u sandbox.Usage, seconds float64) sandbox.Usage {
			u.CPUSeconds, u.Waiting = new(3600+cores*seconds), waits
			return u
		}
	}
	leak := func(u sandbox.Usage, seconds float64) sandbox.Usage {
		u.CPUSeconds, u.MemoryBytes = new(3600.0), new(int64((480+3*seconds)*sandbox.MiB))
		return u
	}
	long := 30 * time.Minute
	start := old("start001", long, cpu(0, ""))
	start.Sandbox.State = sandbox.StateProvisioning
	kept := old("kept0001", long, cpu(0, "sleep"))
	kept.Sandbox.Labels[sandbox.LabelKeptUntil] = now.Add(time.Hour).Format(time.RFC3339)
	young := old("young001", 10*time.Second, cpu(0.3, ""))
	young.Sandbox.CreatedAt, young.Sandbox.StartedAt = now.Add(-time.Minute), now.Add(-time.Minute)
	p.Add(
		old("loop0001", long, cpu(1, "")), old("hung0001", long, cpu(0, "tcp 10.0.0.1:443")), old("mute0001", long, cpu(0, "sleep")),
		old("leak0001", long, leak), old("works001", time.Second, cpu(0.3, "")), start, kept, young,
	)
	return p, map[string][2]any{
		"local/loop0001": {"true", "busy_loop"}, "local/hung0001": {"true", "hung_io"}, "local/mute0001": {"true", "silent"}, "local/leak0001": {"true", "leak"},
		"local/works001": {"false", nil}, "local/start001": {"true", "provisioning"}, "local/kept0001": {"false", nil}, "local/young001": {"false", nil},
	}
}

// TestEveryVerbSaysTheSame: one sandbox has one word, whoever is asked.
func TestEveryVerbSaysTheSame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, want := causesFleet()
		b := newBench(p).configureNothing(t)
		b.now = time.Now
		words := func(items []map[string]any) map[string][2]any {
			got := map[string][2]any{}
			for _, item := range items {
				got[fmt.Sprint(item["ref"])] = [2]any{item["stuck"], item["cause"]}
			}
			return got
		}
		stuck, running := map[string][2]any{}, map[string][2]any{}
		for ref, word := range want {
			if word[0] == "true" {
				stuck[ref] = word
			}
			if ref != "local/start001" {
				running[ref] = word
			}
		}
		assert.Equal(t, stuck, words(b.run(t, "ls --stuck -o json").list(t, "items")), "ls --stuck")
		assert.Equal(t, want, words(b.run(t, "ls --look -o json").list(t, "items")), "ls --look")
		assert.Equal(t, running, words(b.run(t, "top -o json").list(t, "items")), "top")
		total := b.run(t, "stats --look -o json").total(t)
		assert.InDelta(t, float64(len(stuck)), total["stuck"], 0)
		assert.InDelta(t, 0, total["unjudged"], 0)
		plan, _ := b.run(t, "cleanup --stuck --unowned -o json").object(t)["plan"].(map[string]any)
		assert.Equal(t, stuck, words(itemsOf(plan, "selected")), "cleanup")
		reasons := map[any]any{}
		for _, item := range itemsOf(plan, "selected") {
			reasons[item["ref"]] = item["reason"]
		}
		for ref, word := range want {
			said := func(of map[string]any) [2]any { return [2]any{of["stuck"], of["cause"]} }
			item := b.run(t, "inspect "+ref+" -o json").item(t)
			assert.Equal(t, word, said(item), "inspect %s: %v", ref, item["reason"])
			if word[0] == "true" {
				cut := func(reason any) string { before, _, _ := strings.Cut(fmt.Sprint(reason), " ("); return before }
				assert.Equal(t, cut(reasons[ref]), cut(item["reason"]), "the reason is one, too")
			}
		}
		for ref, diagnosis := range b.reconciled(t, want) {
			said := [2]any{diagnosis["stuck"], diagnosis["cause"]}
			assert.Equal(t, want[ref], said, "reconcile %s", ref)
		}
		waited := b.run(t, "wait local/loop0001 --for running -o json").item(t)
		assert.Equal(t, []any{"unknown", "unknown", false}, []any{waited["stuck"], waited["cause"], waited["looked"]}, "wait has not looked, and says so")
	})
}

// reconciled puts every sandbox on record as over, and gives what reconcile makes of those
// that it would end for it.
func (b *bench) reconciled(t *testing.T, refs map[string][2]any) map[string]map[string]any {
	t.Helper()
	for word := range refs {
		ref, err := sandbox.ParseRef(word)
		require.NoError(t, err)
		require.NoError(t, b.kept(time.Now).PutRecord(t.Context(), store.Record{
			Provider: ref.Provider, ID: ref.ID, State: sandbox.StateTerminated, CreatedAt: time.Now().Add(-2 * time.Hour), UpdatedAt: time.Now(),
		}))
	}
	found := map[string]map[string]any{}
	for _, item := range b.run(t, "reconcile --records store --provider local -o json").list(t, "items") {
		diagnosis, _ := item["diagnosis"].(map[string]any)
		if diagnosis["looked"] == true {
			found[fmt.Sprint(item["ref"])] = diagnosis
		}
		assert.False(t, item["ref"] == "local/works001" && item["action"] != "report", "what works is not ended: %v", item)
	}
	assert.Len(t, found, 4, "those that run, whose record shows no life and that nobody keeps")
	return found
}

func itemsOf(object map[string]any, key string) []map[string]any {
	list, _ := object[key].([]any)
	items := make([]map[string]any, 0, len(list))
	for _, one := range list {
		item, _ := one.(map[string]any)
		items = append(items, item)
	}
	return items
}

// TestWhatSbxKeepsIsEndedByItsNameAlone: neither a cron line nor a pipe of old ones ends it.
func TestWhatSbxKeepsIsEndedByItsNameAlone(t *testing.T) {
	t.Parallel()
	one := running("kept0001", 3*time.Hour)
	one.Sandbox.Activity = sandbox.False
	one.Sandbox.Labels = map[string]string{sandbox.LabelKeptUntil: noon.Add(time.Minute).Format(time.RFC3339)}
	b, p := oneFake(one)
	b.configureNothing(t)
	assert.Empty(t, b.run(t, "ls --stuck -o name").stdout)
	for _, line := range []string{"cleanup --stuck --unowned --yes --max-delete 9", "cleanup --older-than 1h --unowned --ignore-activity --yes --max-delete 9"} {
		require.Equal(t, 0, b.run(t, line).code, line)
	}
	b.stdin = b.run(t, "ls --older-than 1h -o name").stdout
	require.Equal(t, "prod/kept0001\n", b.stdin)
	r := b.run(t, "terminate -")
	assert.Contains(t, r.stdout+r.stderr, "sbx keeps it on purpose until 2026-11-20T12:01:00Z")
	assert.Empty(t, p.Calls(fake.OpTerminate))
	assert.Equal(t, 0, b.run(t, "terminate prod/kept0001").code)
	assert.Len(t, p.Calls(fake.OpTerminate), 1)
}

// TestAWrongClockMakesNothingOld: this machine's clock is 15 minutes ahead, and the
// sandbox is 5 s old, for every verb that asks for ages.
func TestAWrongClockMakesNothingOld(t *testing.T) {
	t.Parallel()
	born := noon.Add(-15*time.Minute - 5*time.Second)
	seed := fake.Seed{Sandbox: sandbox.Sandbox{ID: "fresh001", CreatedAt: born, StartedAt: born, LastActivityAt: born, TaskID: "t-1"}, Usage: func(at time.Time) sandbox.Usage {
		return sandbox.Usage{At: at, CPUPercent: new(0.0)}
	}}
	p := fake.New(fake.Options{Name: "prod", Now: atNoon, Skew: -15 * time.Minute})
	p.Add(seed)
	b := newBench(p).configureNothing(t)
	for _, line := range []string{"ls --stuck -o name", "ls --older-than 10m -o name", "ls --older-than 10s -o name"} {
		assert.Empty(t, b.run(t, line).stdout, line)
	}
	assert.Equal(t, "prod/fresh001\n", b.run(t, "ls --younger-than 10s -o name").stdout)
	item := b.run(t, "inspect prod/fresh001 -o json").item(t)
	assert.InDelta(t, 5.0, item["age_seconds"], 0.001)
	assert.InDelta(t, 5.0, item["idle_seconds"], 0.001)
	assert.Equal(t, "false", item["stuck"])
	assert.InDelta(t, 5.0, b.run(t, "stats -o json").list(t, "items")[0]["age_max_seconds"], 0.001)
	plan, _ := b.run(t, "cleanup --older-than 10m --unowned -o json").object(t)["plan"].(map[string]any)
	assert.Empty(t, plan["selected"])
}

// TestInspectShowsTheTimelineThatItHas: a source that fails hides nothing of the others.
func TestInspectShowsTheTimelineThatItHas(t *testing.T) {
	t.Parallel()
	i := views.Inspection{}
	i.Seen.Events.Got = []sandbox.Event{{At: noon, Event: "created"}}
	i.Seen.Events.Err = assert.AnError
	assert.Len(t, *i.Item().Timeline, 1)
	i.Seen.Events.Got = nil
	assert.Nil(t, i.Item().Timeline)
}
