package config

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

func TestAProfileOfAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("providers:\n  prod: {type: cloud, token: one, url: 'https://a', owned: {labels: {Team.x/y: A}}}\n")
	p, ok := w.must().Find("prod")
	require.True(t, ok)
	assert.Equal(t, map[string]string{"activity": "auto", "token": "one", "url": "https://a"}, p.Settings)
	assert.Equal(t, map[string]string{"Team.x/y": "A"}, p.Owned.Labels, "case and dots are kept")
	assert.False(t, p.Implicit)
}

func TestOptionsOfEveryKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("providers:\n  here: {type: here, memory: 1G, ttl: 1h30m, shell: [a b, 'true', 1.0], tags: {A.b: yes}, strict: false, pids: 7}\n")
	p := w.must().Profiles[0]
	assert.Equal(t, map[string]string{
		"activity": "auto", "memory": "1G", "ttl": "1h30m", "shell": `["a b","true","1.0"]`, "tags": `{"A.b":"yes"}`, "strict": "false", "pids": "7",
	}, p.Settings)
	assert.Equal(t, "1G <- DIR/home/.config/sbx/config.yaml:2", w.origin(w.must(), "providers.here.memory"))
	w.env = append(w.env, "HERE_MEMORY=2G")
	assert.Equal(t, "2G <- env HERE_MEMORY", w.origin(w.must(), "providers.here.memory"))
}

func TestEnvironmentOfATypeReachesOnlyTheProfileOfItsName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "CLOUD_KEY=envkey", "CLOUD_URL=https://env")
	w.user("providers:\n  cloud: {type: cloud, token: filekey}\n  prod: {type: cloud, token: prodkey}\n")
	c := w.must()
	cloud, _ := c.Find("cloud")
	prod, _ := c.Find("prod")
	assert.Equal(t, map[string]string{"activity": "auto", "token": "envkey", "url": "https://env"}, cloud.Settings)
	assert.Equal(t, map[string]string{"activity": "auto", "token": "prodkey", "url": "https://cloud.example"}, prod.Settings)
	assert.Equal(t, []string{"cloud", "here", "prod"}, c.profileNames())
}

func TestSecretFromNamedVariable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("providers:\n  prod: {type: cloud, token_env: PROD_KEY, pin_env: PROD_PIN}\n")
	p, _ := w.must().Find("prod")
	assert.NotContains(t, p.Settings, "token", "a variable that is not set leaves the rest usable")
	assert.Equal(t, map[string]string{"token": "PROD_KEY", "pin": "PROD_PIN"}, p.Unset)
	assert.Equal(t, " <- env PROD_KEY (not set) by DIR/home/.config/sbx/config.yaml:2", w.origin(w.must(), "providers.prod.token"))

	w.env = append(w.env, "PROD_KEY=s3cret", "PROD_PIN=1234")
	c := w.must()
	p, _ = c.Find("prod")
	assert.Equal(t, "s3cret", p.Settings["token"])
	assert.Equal(t, "******** <- env PROD_KEY by DIR/home/.config/sbx/config.yaml:2", w.origin(c, "providers.prod.token"))
	assert.ElementsMatch(t, []string{"s3cret", "1234"}, c.Secrets())

	w.env = append(w.env, "PROD_PIN=s3cret")
	assert.Equal(t, "env PROD_PIN: pin: must be written like 1", w.fails())
}

func TestTypesSwitchThemselvesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "CLOUD_KEY=k1", "FAR_URL=http://far")
	c := w.must()
	require.Equal(t, []string{"cloud", "far", "here"}, c.profileNames())
	cloud, _ := c.Find("cloud")
	assert.True(t, cloud.Implicit)
	assert.Equal(t, Owned{Has: sandbox.LabelOwner}, cloud.Owned)
	assert.Equal(t, "sbx/owner=* <- default", w.origin(c, "providers.cloud.owned"))
	assert.Equal(t, "cloud <- env CLOUD_KEY", w.origin(c, "providers.cloud.type"))
	assert.Equal(t, "here <- default", w.origin(c, "providers.here.type"))

	w.env = append(w.env, "SBX_PROVIDER=cloud")
	cloud, _ = w.must().Find("cloud")
	assert.False(t, cloud.Owned.All, "an exported variable does not name a profile for deletion")

	w.flags["provider"] = "cloud"
	c = w.must()
	cloud, _ = c.Find("cloud")
	assert.False(t, cloud.Owned.All, "a flag that narrows never widens")
	assert.Equal(t, "sbx/owner=* <- default", w.origin(c, "providers.cloud.owned"))
}

func TestNamingAProfileKeepsItsOwnRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("providers:\n  prod: {type: cloud, token: x, owned: {labels: {a: b}}}\n")
	w.flags["provider"] = "prod"
	p, _ := w.must().Find("prod")
	assert.Equal(t, Owned{Labels: map[string]string{"a": "b"}}, p.Owned)
}

func TestAccountsStandOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env   []string
		user  string
		names []string
		fails string
	}{
		"another account": {
			env: []string{"CLOUD_KEY=a"}, user: "{prod: {type: cloud, token: b}}", names: []string{"cloud", "here", "prod"},
		},
		"the same key": {
			env: []string{"CLOUD_KEY=a"}, user: "{prod: {type: cloud, token: a}}", names: []string{"here", "prod"},
		},
		"the same key at another address": {
			env: []string{"CLOUD_KEY=a"}, user: "{prod: {type: cloud, token: a, url: https://b}}", names: []string{"cloud", "here", "prod"},
		},
		"the same address spelt otherwise": {
			env: []string{"CLOUD_KEY=a"}, user: "{prod: {type: cloud, token: a, url: HTTPS://Cloud.example/}}", names: []string{"here", "prod"},
		},
		"the same variable at another address": {
			env: []string{"CLOUD_KEY=a"}, user: "{prod: {type: cloud, token_env: CLOUD_KEY, url: https://b}}", names: []string{"here", "prod"},
		},
		"the same address without credentials": {
			env: []string{"FAR_URL=http://x/"}, user: "{prod: {type: far, url: 'http://x'}}", names: []string{"here", "prod"},
		},
		"always there under another name": {
			user: "{box: {type: here}}", names: []string{"box"},
		},
		"its own name": {
			env: []string{"CLOUD_KEY=a"}, user: "{cloud: {type: cloud, url: https://b}}", names: []string{"cloud", "here"},
		},
		"its own name, another credential": {
			env: []string{"CLOUD_KEY=a", "OTHER=s3cret"}, user: "{cloud: {type: cloud, token_env: OTHER}}",
			fails: "env CLOUD_KEY is another account than profile cloud, but would get its name; rename the profile or unset the variable",
		},
		"two configured": {
			user:  "{prod: {type: cloud, token: s3cret}, two: {type: cloud, token: s3cret}}",
			fails: "DIR/home/.config/sbx/config.yaml:1: profile two is the same account as profile prod; keep one",
		},
		"two of this machine": {
			user:  "{box: {type: here}, here: {type: here}}",
			fails: "DIR/home/.config/sbx/config.yaml:1: profile here is the same account as profile box; keep one",
		},
		"two without credentials": {
			user: "{prod: {type: cloud, token_env: A}, two: {type: cloud, token_env: B}}", names: []string{"here", "prod", "two"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env = append(w.env, tc.env...)
			w.user("providers: " + tc.user + "\n")
			if tc.fails == "" {
				assert.Equal(t, tc.names, w.must().profileNames())
				return
			}
			assert.Equal(t, tc.fails, w.fails())
			_, err := w.load()
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
		})
	}
}

func TestSecretsNeverReachText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "CLOUD_KEY=s3cret-one")
	w.user("providers: {prod: {type: cloud, token: s3cret-two, url: 'https://me:s3cret-three@h/p'}}\n")
	c := w.must()
	assert.ElementsMatch(t, []string{"s3cret-one", "s3cret-two", "s3cret-three"}, c.Secrets())
	for _, text := range []string{
		fmt.Sprintf("%v %+v %#v %s", c, c, c, c), fmt.Sprintf("%v %+v %#v %s", c.Profiles, c.Profiles, c.Profiles, c.Profiles), fmt.Sprint(c.Values()),
	} {
		assert.NotContains(t, text, "s3c")
	}
	assert.Contains(t, fmt.Sprint(c), "prod")
	assert.Equal(t, "https://me:********@h/p <- DIR/home/.config/sbx/config.yaml:1", w.origin(c, "providers.prod.url"))
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"": "", "x/": "x", "HTTP://A/": "http://a", "http://a/B/": "http://a/B", "http://a": "http://a", "https://a": "https://a",
	} {
		assert.Equal(t, want, normalizeURL(url), url)
	}
}
