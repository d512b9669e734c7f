package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
)

func agents() Owned { return Owned{Labels: map[string]string{"team": "agents"}} }

// TestOwnKeepsEverythingElse of a file, in every form that a file may have.
func TestOwnKeepsEverythingElse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		owned         Owned
		before, after string
	}{
		"no file":            {Owned{All: true}, "", "providers:\n  cloud:\n    type: cloud\n    owned: all\n"},
		"comments alone":     {Owned{All: true}, "# mine\n#providers:\n", "# mine\n#providers:\nproviders:\n  cloud:\n    type: cloud\n    owned: all\n"},
		"no providers":       {agents(), "limits:\n  max_delete: 3 # careful", "limits:\n  max_delete: 3 # careful\nproviders:\n  cloud:\n    type: cloud\n    owned: {labels: {team: agents}}\n"},
		"other providers":    {Owned{All: true}, "providers: # ours\n    # the machine\n    here: {type: here}\n# the end\n", "providers: # ours\n    cloud:\n      type: cloud\n      owned: all\n    # the machine\n    here: {type: here}\n# the end\n"},
		"a block without":    {Owned{All: true}, "providers:\n  cloud:\n    # which one\n    type: cloud # this one\n    url: https://c.example\n", "providers:\n  cloud:\n    # which one\n    type: cloud # this one\n    owned: all\n    url: https://c.example\n"},
		"a line without":     {Owned{All: true}, "providers:\n  cloud: {type: cloud} # short\n", "providers:\n  cloud: {owned: all, type: cloud} # short\n"},
		"a line with all":    {agents(), "providers:\n  cloud: {type: cloud, owned: all} # short\n", "providers:\n  cloud: {type: cloud, owned: {labels: {team: agents}}} # short\n"},
		"a line with labels": {Owned{All: true}, "providers:\n  cloud: {type: cloud, owned: {labels: {'a}': \"b}\\\"\"}}, url: https://c.example}\n", "providers:\n  cloud: {type: cloud, owned: all, url: https://c.example}\n"},
		"a block with all":   {agents(), "providers:\n  cloud:\n    owned: all # of it\n    type: cloud\n", "providers:\n  cloud:\n    owned: {labels: {team: agents}} # of it\n    type: cloud\n"},
		"a block of labels":  {Owned{All: true}, "providers:\n  cloud:\n    owned: # of us\n      labels:\n        team: agents\n        stage: prod\n    # the address\n    url: https://c.example\n    type: cloud\n", "providers:\n  cloud:\n    owned: all\n    # the address\n    url: https://c.example\n    type: cloud\n"},
		"all in braces":      {Owned{All: true}, "{limits: {max_delete: 3}}\n", "{providers: {cloud: {type: cloud, owned: all}}, limits: {max_delete: 3}}\n"},
		"empty braces":       {Owned{All: true}, "{}\n", "{providers: {cloud: {type: cloud, owned: all}}}\n"},
		"providers, braces":  {Owned{All: true}, "providers: {here: {type: here}}\n", "providers: {cloud: {type: cloud, owned: all}, here: {type: here}}\n"},
		"odd words":          {Owned{Labels: map[string]string{"a b": "*", "null": "12: 'x'"}}, "", "providers:\n  cloud:\n    type: cloud\n    owned: {labels: {\"a b\": \"*\", \"null\": \"12: 'x'\"}}\n"},
		"it says so already": {agents(), "providers:\n  cloud: {type: cloud, owned: {labels: {team: agents}}}", "providers:\n  cloud: {type: cloud, owned: {labels: {team: agents}}}"},
		"letters of others":  {Owned{All: true}, "providers:\n  'cloud': {type: cloud, url: https://c.example/ä, owned: {labels: {größe: é}}}\n", "providers:\n  'cloud': {type: cloud, url: https://c.example/ä, owned: all}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env = append(w.env, "CLOUD_KEY=s3cret")
			path := filepath.Join(w.home, ".config", "sbx", "config.yaml")
			if tc.before != "" {
				w.user(tc.before)
				require.NoError(t, os.Chmod(path, 0o640))
			}
			c, err := Own(t.Context(), w.input(), []string{"cloud"}, tc.owned)
			require.NoError(t, err)
			if tc.before == "" {
				assert.NoFileExists(t, path, "nothing is written before Write")
			}
			assert.Equal(t, tc.before == tc.after, len(c.Diff) == 0)
			require.NoError(t, c.Write())
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, tc.after, string(got))
			p, _ := w.must().Find("cloud")
			assert.Equal(t, tc.owned, p.Owned)
			assert.False(t, p.OwnerUnset())
			info, err := os.Stat(path)
			require.NoError(t, err)
			if tc.before != "" {
				assert.Equal(t, os.FileMode(0o640), info.Mode().Perm(), "who may read it stays as it is")
			} else {
				assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
			}
		})
	}
}

func TestOwnRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		user, project string
		profile       string
		owned         Owned
		kind          fault.Kind
		says, hint    string
	}{
		"a profile that is not there": {"", "", "clodu", Owned{All: true}, fault.KindUsage, `there is no profile "clodu"`, "`sbx providers`"},
		"one that is not switched on": {"", "", "far", Owned{All: true}, fault.KindUsage, `there is no profile "far"`, "set FAR_URL to switch the profile far on, or `providers: {far: {type: far}}` in the configuration makes it; docs/PROVIDERS.md has its settings"},
		"labels where none are":       {"providers:\n  bare: {type: bare}\n", "", "bare", agents(), fault.KindUsage, "sandboxes of bare have no labels", "--all"},
		"a form that is not known":    {"providers:\n  cloud:\n    owned: {labels:\n      {team: other}}\n    type: cloud\n", "", "cloud", Owned{All: true}, fault.KindRefused, "cannot be changed safely", "`owned: all`"},
		"a file that is broken":       {"providers: 3\n", "", "cloud", Owned{All: true}, fault.KindUsage, "providers must be a mapping", "correct the file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env = append(w.env, "CLOUD_KEY=s3cret")
			if tc.user != "" {
				w.user(tc.user)
			}
			in := w.input()
			in.Types = append(in.Types, providers.Type{Name: "bare", NoLabels: true})
			_, err := Own(t.Context(), in, []string{tc.profile}, tc.owned)
			require.Error(t, err)
			assert.Equal(t, tc.kind, fault.KindOf(err))
			assert.Contains(t, err.Error(), tc.says)
			assert.Contains(t, fault.HintOf(err), tc.hint)
		})
	}
	_, err := OwnedLabels(nil)
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	_, err = OwnedLabels(map[string]string{"Sbx/Keep ": "true"})
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
}

// TestOwnSeesThroughItsOwnFlag: --provider names the profile here, and makes nothing ours.
func TestOwnSeesThroughItsOwnFlag(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "CLOUD_KEY=s3cret", "FAR_URL=https://far.example")
	w.flags["provider"] = "cloud,far"
	link := filepath.Join(w.home, "linked.yaml")
	target := w.write(filepath.Join(w.root, "dotfiles", "sbx.yaml"), "limits: {max_delete: 3}\n")
	require.NoError(t, os.Symlink(target, link))
	w.file = link
	c, err := Own(t.Context(), w.input(), []string{"cloud", "far"}, Owned{All: true})
	require.NoError(t, err)
	assert.Equal(t, []string{"+providers:", "+  cloud:", "+    type: cloud", "+    owned: all", "+  far:", "+    type: far", "+    owned: all"}, c.Diff)
	require.NoError(t, c.Write())
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&os.ModeSymlink, "a link stays a link")
	w.flags = map[string]string{}
	for _, p := range w.must().Profiles {
		assert.True(t, p.Owned.All, p.Name)
	}
}

// TestAnyValueOfALabelOwns what carries it, and nothing else.
func TestAnyValueOfALabelOwns(t *testing.T) {
	t.Parallel()
	o := Owned{Labels: map[string]string{"sbx/owner": AnyValue, "team": "a"}}
	assert.True(t, o.Owns(map[string]string{"sbx/owner": "x", "team": "a"}))
	assert.False(t, o.Owns(map[string]string{"team": "a"}))
	assert.False(t, o.Owns(map[string]string{"sbx/owner": "x", "team": "*"}))
}

// FuzzOwn: whatever the file, it says afterwards what it should and everything else as
// before, or it is left alone.
func FuzzOwn(f *testing.F) {
	for _, seed := range []string{"", "providers:\n  cloud:\n    type: cloud\n", "{providers: {cloud: {type: cloud, owned: {labels: {a: b}}}}}", "use: [cloud]\n#x\n", "providers:\n  cloud: {type: cloud,\n    owned: all}\n", "---\nproviders:\n  here: {type: here}\n...\n"} {
		f.Add(seed)
	}
	types := testTypes()
	f.Fuzz(func(t *testing.T, content string) {
		before, errs := decodeFile("f.yaml", []byte(content), types)
		if len(errs) > 0 {
			return
		}
		text, err := setOwned("f.yaml", content, "cloud", "cloud", agents(), types)
		if err != nil {
			require.Equal(t, fault.KindRefused, fault.KindOf(err))
			return
		}
		after, errs := decodeFile("f.yaml", []byte(text), types)
		require.Empty(t, errs, "%q", text)
		if before == nil {
			before = newDocument("f.yaml")
		}
		require.True(t, sameBut(before, after, "cloud", agents()), "%q", text)
	})
}
