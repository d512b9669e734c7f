package cli

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sbx/internal/config"
	"sbx/internal/hostfile"
	"sbx/internal/sandbox"
)

const (
	// nameCacheAge is how old a listing may be that completion uses: an offered name that is
	// gone by then is an error of the verb, and costs nothing.
	nameCacheAge = 24 * time.Hour
	// nameCachePace is how often a listing is written at most, since --watch lists on and on.
	nameCachePace = 10 * time.Second
	maxNameCache  = 1 << 20
	nameFolder    = "names"
)

// nameCache is fleet.NameCache: one file for each profile in the state directory. The profiles
// of this machine are listed in no time and are left out.
type nameCache struct {
	dir  string // "" = there is no state directory
	skip func(profile string) bool
	now  func() time.Time
	mu   *sync.Mutex
}

// cachedName is one line of the file.
type cachedName struct {
	ID    string        `json:"id"`
	Name  string        `json:"name"`
	State sandbox.State `json:"state"`
}

func (a *app) newNameCache(c *config.Config) nameCache {
	n := nameCache{now: a.process.Now, mu: &sync.Mutex{}}
	if dir, err := c.State(); err == nil {
		n.dir = filepath.Join(dir, nameFolder)
	}
	n.skip = func(profile string) bool {
		p, found := c.Find(profile)
		return !found || p.InStateDir
	}
	return n
}

// Caches is fleet.NameCache's.
func (n nameCache) Caches(profile string) bool { return n.dir != "" && !n.skip(profile) }

func (n nameCache) path(profile string) string {
	return filepath.Join(n.dir, url.PathEscape(profile)+".json")
}

// Read is fleet.NameCache's.
func (n nameCache) Read(profile string) []sandbox.Sandbox {
	if !n.Caches(profile) {
		return nil
	}
	info, err := os.Stat(n.path(profile))
	if err != nil || n.now().Sub(info.ModTime()) > nameCacheAge {
		return nil
	}
	content, err := hostfile.Read(context.Background(), n.path(profile), maxNameCache) //nolint:forbidigo // a small file of this user
	var kept []cachedName
	if err != nil || json.Unmarshal(content, &kept) != nil {
		return nil
	}
	list := make([]sandbox.Sandbox, len(kept))
	for i, k := range kept {
		list[i] = sandbox.Sandbox{Provider: profile, ID: k.ID, Name: k.Name, State: k.State}
	}
	return list
}

// Write is fleet.NameCache's.
func (n nameCache) Write(profile string, listed []sandbox.Sandbox) {
	if !n.Caches(profile) {
		return
	}
	if info, err := os.Stat(n.path(profile)); err == nil && n.now().Sub(info.ModTime()).Abs() < nameCachePace {
		return
	}
	n.replace(profile, listed)
}

// Drop is fleet.NameCache's.
func (n nameCache) Drop(profile string, ids []string) {
	if kept := n.Read(profile); len(kept) > 0 {
		n.replace(profile, slices.DeleteFunc(kept, func(s sandbox.Sandbox) bool { return slices.Contains(ids, s.ID) }))
	}
}

// AddUnlisted is fleet.NameCache's.
func (n nameCache) AddUnlisted(profile string, missing []sandbox.Sandbox) {
	if len(missing) == 0 || !n.Caches(profile) {
		return
	}
	kept := n.Read(profile)
	for _, s := range missing {
		if !slices.ContainsFunc(kept, func(k sandbox.Sandbox) bool { return k.ID == s.ID }) {
			kept = append(kept, s)
		}
	}
	n.replace(profile, kept)
}

// replace keeps nothing where it cannot: completion is then slower and nothing else.
func (n nameCache) replace(profile string, listed []sandbox.Sandbox) {
	n.mu.Lock()
	defer n.mu.Unlock()
	kept := make([]cachedName, len(listed))
	for i, s := range listed {
		kept[i] = cachedName{ID: s.ID, Name: s.Name, State: s.State}
	}
	content, err := json.Marshal(kept)
	if err != nil || os.MkdirAll(n.dir, 0o700) != nil {
		return
	}
	_ = hostfile.Replace(n.path(profile), content, 0o600)
}
