package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestASourceIsNoProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "CLOUD_KEY=k")
	w.user("providers:\n  omoi: {type: watcher, url: http://w, attach: here}\n  other: {type: watcher, url: http://o}\n")
	c, err := w.load()
	require.NoError(t, err)
	assert.Equal(t, []string{"cloud", "here"}, c.profileNames())
	require.Len(t, c.SourcesOf("here"), 1)
	assert.Equal(t, "omoi", c.SourcesOf("here")[0].Name)
	assert.Equal(t, "other", c.SourcesOf("cloud")[0].Name, "the type's default")
	assert.Empty(t, c.Loose())
	_, ok := c.Find("omoi")
	assert.False(t, ok)
	shown := map[string]string{}
	for _, v := range c.Values() {
		shown[v.Key] = v.Value
	}
	assert.Equal(t, "here", shown["providers.omoi.attach"])
	assert.NotContains(t, shown, "providers.omoi.owned")
	assert.NotContains(t, shown, "providers.omoi.activity", "a source has no sandboxes")
}

func TestASourceWithoutItsProfile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("providers:\n  omoi: {type: watcher, url: http://w}\n")
	c, err := w.load()
	require.NoError(t, err, "cloud is not switched on in this run")
	require.Len(t, c.Loose(), 1)

	w = newWorld(t)
	path := w.user("providers:\n  omoi: {type: watcher, url: http://w, attach: hree}\n")
	_, err = w.load()
	require.ErrorContains(t, err, path+`:2: omoi is attached to "hree", and there is no such profile (did you mean "here"?`)
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))

	w = newWorld(t)
	w.user("providers:\n  omoi: {type: watcher, url: http://w, attach: here}\nuse: [omoi]\n")
	_, err = w.load()
	require.ErrorContains(t, err, `there is no profile "omoi"`)
	assert.Equal(t, "omoi is only a source for sandboxes of here; name that profile", fault.HintOf(err))
}

func TestASecretOfACommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.user("providers:\n  prod: {type: cloud, token_command: [pass, show, prod]}\n")
	c, err := w.load()
	require.NoError(t, err)
	p, _ := c.Find("prod")
	assert.Equal(t, map[string][]string{"token": {"pass", "show", "prod"}}, p.Commands)
	assert.NotContains(t, p.Settings, "token")
	for _, v := range c.Values() {
		if v.Key == "providers.prod.token" {
			assert.Equal(t, Value{Key: v.Key, Value: Mask, Origin: "command pass by " + path + ":2", Secret: true}, v)
		}
	}
	w = newWorld(t)
	w.env = append(w.env, "CLOUD_KEY=k")
	w.user("providers:\n  cloud: {type: cloud, token_command: [pass, show, prod]}\n")
	c, err = w.load()
	require.NoError(t, err)
	p, _ = c.Find("cloud")
	assert.Empty(t, p.Commands, "the environment is stronger than a file")
	assert.Equal(t, "k", p.Settings["token"])
	for content, says := range map[string]string{
		"token_command: []":                        "names no program",
		"token_command: pass":                      "must be a list",
		"token_command: [pass], token: x":          "sets its token twice",
		"token_env: CLOUD_KEY, token_command: [x]": "sets its token twice",
		"url_command: [x]":                         "unknown key",
	} {
		w := newWorld(t)
		w.user("providers:\n  prod: {type: cloud, " + content + "}\n")
		_, err := w.load()
		assert.ErrorContains(t, err, says)
	}
}

func TestWhenAProfilesSandboxesAreStuck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("providers:\n  prod: {type: cloud, token: x, activity: age-only, stuck_after: {Implementation: 15m, default: 10m}}\n")
	c, err := w.load()
	require.NoError(t, err)
	p, _ := c.Find("prod")
	assert.True(t, p.AgeOnly())
	assert.Equal(t, map[string]time.Duration{"Implementation": 15 * time.Minute, "": 10 * time.Minute}, p.StuckAfter())
	here, _ := c.Find("here")
	assert.False(t, here.AgeOnly())
	assert.Nil(t, here.StuckAfter())
	for content, says := range map[string]string{
		"activity: never":             `must be one of auto, age-only, not "never"`,
		"stuck_after: 10m":            "must be written like {implementation: 15m, default: 10m}",
		"stuck_after: {a: 10}":        `"a": `,
		"stuck_after: {a: -10m}":      `"a": `,
		"stuck_after: {a: 0s}":        `"a": `,
		"stuck_after: {a: 1m, a: 2m}": "names one key twice",
	} {
		w := newWorld(t)
		w.user("providers:\n  prod: {type: cloud, token: x, " + content + "}\n")
		_, err := w.load()
		assert.ErrorContains(t, err, says, content)
	}
}
