package commands

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// keptNames are the last complete listings of profiles, in memory.
type keptNames map[string]map[string]sandbox.Sandbox

func (k keptNames) Caches(string) bool { return true }

func (k keptNames) Read(profile string) []sandbox.Sandbox {
	return slices.Collect(maps.Values(k[profile]))
}

func (k keptNames) Write(profile string, listed []sandbox.Sandbox) {
	k[profile] = map[string]sandbox.Sandbox{}
	k.AddUnlisted(profile, listed)
}

func (k keptNames) Drop(profile string, ids []string) {
	maps.DeleteFunc(k[profile], func(id string, _ sandbox.Sandbox) bool { return slices.Contains(ids, id) })
}

func (k keptNames) AddUnlisted(profile string, missing []sandbox.Sandbox) {
	for _, s := range missing {
		k[profile][s.ID] = s
	}
}

// listedBefore is a bench whose earlier listing had these sandboxes too, running.
func listedBefore(ids ...string) (*bench, *fake.Provider) {
	b, p := oneFake(running("aaaa", time.Minute))
	b.names = keptNames{"prod": {}}
	for _, id := range ids {
		b.names.AddUnlisted("prod", []sandbox.Sandbox{{Provider: "prod", ID: id, State: sandbox.StateRunning}})
	}
	return b, p
}

// TestWhatAListLeavesOutIsReadByItsID: a row of the last complete listing that a new one does not have, and of
// which no end is on record, is read once. One that still exists makes the listing incomplete, each time.
func TestWhatAListLeavesOutIsReadByItsID(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "prod", Now: atNoon, PageSize: 1})
	p.Add(running("aaaa", time.Minute), running("hidden01", time.Hour))
	b := newBench(p)
	b.names = keptNames{"prod": {}}
	require.Equal(t, 0, b.run(t, "ls").code)
	p.Break(fake.Fault{Op: fake.OpList, Page: 2, Skip: true})
	for range 2 {
		r := b.run(t, "ls -o json")
		assert.Equal(t, 3, r.code, r.stderr)
		assert.Equal(t, false, r.object(t)["complete"])
		assert.Contains(t, r.list(t, "unlisted"), map[string]any{"ref": "prod/hidden01", "exists": "true", "state": "running"})
		assert.Contains(t, r.stdout, "the list leaves out 1 that the last one had and that still exist by their id: prod/hidden01 (running)")
		assert.Contains(t, r.stdout, "`sbx inspect prod/hidden01`")
	}
	p.Mend()
	for _, line := range []string{"ls", "ls --state running", "ls --label a=b"} {
		r := b.run(t, line)
		assert.Equal(t, 0, r.code, r.stderr)
		assert.NotContains(t, r.stderr, "listing", line)
	}
	assert.NotContains(t, b.run(t, "ls -o json").stdout, "unlisted")
}

// TestWhatIsListedNoMoreIsSaidOnce, and read at most 20 at a time; what has ended by its own record, or by that of a
// run, is not said.
func TestWhatIsListedNoMoreIsSaidOnce(t *testing.T) {
	t.Parallel()
	b, p := listedBefore("gone0001", "over0001", "ours0001", "asked001")
	p.Add(endedSeed("over0001", sandbox.StateTerminated, nil), running("ours0001", time.Hour))
	require.Equal(t, 0, b.run(t, "terminate prod/ours0001 --delete").code)
	b.names.AddUnlisted("prod", []sandbox.Sandbox{{Provider: "prod", ID: "ours0001", State: sandbox.StateRunning}}) // as another host has it
	b.requests = openEnds{{Provider: "prod", ID: "asked001"}: {At: noon, Detail: "HTTP 500"}}
	const says = "1 of the last complete listing are not listed any more, and not found by their id; no end of them is on record: prod/gone0001"
	r := b.run(t, "ls")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stderr, says)
	assert.NotContains(t, b.run(t, "ls").stderr, "listing")

	for i := range 25 {
		b.names.AddUnlisted("prod", []sandbox.Sandbox{{Provider: "prod", ID: fmt.Sprintf("many%04d", i), State: sandbox.StateRunning}})
	}
	first := b.run(t, "ls").stderr
	assert.Contains(t, first, "20 of the last complete listing are not listed any more")
	assert.Contains(t, first, "5 more of the last complete listing are not listed any more, and were not read: at most 20 are at once")
	second := b.run(t, "ls").stderr
	assert.Contains(t, second, "5 of the last complete listing are not listed any more")
	assert.NotContains(t, second, "more of the last")
	assert.NotContains(t, b.run(t, "ls").stderr, "listing")

	b.names.AddUnlisted("prod", []sandbox.Sandbox{{Provider: "prod", ID: "gone0002", State: sandbox.StateRunning}})
	p.Break(fake.Fault{Op: fake.OpGet, Err: fault.New(fault.KindUnavailable, "503"), Times: 1})
	failed := b.run(t, "ls")
	assert.Equal(t, 3, failed.code)
	assert.Contains(t, failed.stderr, "get gone0002: 503")
	assert.Contains(t, b.run(t, "ls").stderr, "prod/gone0002", "what could not be read is read by the next one")
}

// TestReconcileSaysWhatAListLeavesOut: it compares what is listed.
func TestReconcileSaysWhatAListLeavesOut(t *testing.T) {
	t.Parallel()
	b, p := compared(t)
	b.names = keptNames{"local": {}}
	b.names.AddUnlisted("local", []sandbox.Sandbox{{Provider: "local", ID: "gone0001", State: sandbox.StateRunning}})
	assert.Contains(t, b.run(t, byStore).stderr, "no end of them is on record: local/gone0001")
	p.Break(fake.Fault{Op: fake.OpList, Page: 1, Skip: true})
	r := b.run(t, byStore)
	assert.Equal(t, 3, r.code, r.stderr)
	assert.Contains(t, r.stderr, "still exist by their id: local/leak (running), local/orphan (running)")
	assert.NotContains(t, r.stderr, "local/fine (", "it has a row, since its record says that it runs")
}
