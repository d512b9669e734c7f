package fleet_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// memoryNames is a NameCache in memory.
type memoryNames struct {
	mu   sync.Mutex
	kept map[string][]sandbox.Sandbox
}

func (m *memoryNames) Caches(profile string) bool { return profile != "local" }

func (m *memoryNames) Read(profile string) []sandbox.Sandbox {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept[profile]
}

func (m *memoryNames) Write(profile string, listed []sandbox.Sandbox) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept[profile] = listed
}

func (m *memoryNames) Drop(profile string, ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var rest []sandbox.Sandbox
	for _, s := range m.kept[profile] {
		if !slices.Contains(ids, s.ID) {
			rest = append(rest, s)
		}
	}
	m.kept[profile] = rest
}

func (m *memoryNames) AddUnlisted(profile string, missing []sandbox.Sandbox) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept[profile] = append(m.kept[profile], missing...)
}

// TestNamesOfASlowProviderComeFromItsLastListing, and those of a quick one from now.
func TestNamesOfASlowProviderComeFromItsLastListing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow, quick := fake.New(fake.Options{Name: "slow"}), fake.New(fake.Options{Name: "quick"})
		for _, p := range []*fake.Provider{slow, quick} {
			p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "one", Name: "first", State: sandbox.StateRunning}}, fake.Seed{Sandbox: sandbox.Sandbox{ID: "two", State: sandbox.StateRunning}})
		}
		cache := &memoryNames{kept: map[string][]sandbox.Sandbox{}}
		f := fleet.New([]fleet.Member{{Provider: slow}, {Provider: quick}}, fleet.Options{Names: cache})
		refs := func() (out []string) {
			for _, s := range f.ListNames(t.Context(), 60*time.Millisecond) {
				out = append(out, s.Ref().String())
			}
			return out
		}
		all := []string{"slow/one", "slow/two", "quick/one", "quick/two"}
		assert.ElementsMatch(t, all, refs())
		slow.Break(fake.Fault{Op: fake.OpList, Delay: time.Hour})
		began := time.Now()
		assert.ElementsMatch(t, all, refs())
		assert.Less(t, time.Since(began), 100*time.Millisecond)
		for range f.Terminate(t.Context(), []sandbox.Sandbox{{Provider: "slow", ID: "one"}}, fleet.EndOptions{}) {
			continue
		}
		assert.ElementsMatch(t, all[1:], refs(), "what has ended is dropped")
	})
}
