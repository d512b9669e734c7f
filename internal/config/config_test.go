package config

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestLaunchTarget(t *testing.T) {
	t.Parallel()
	const profiles = "providers: {prod: {type: cloud, token: a}, test: {type: cloud, token: b}}\n"
	for name, tc := range map[string]struct {
		user string
		env  string
		flag string
		want string
		kind fault.Kind
	}{
		"always there":         {user: profiles, want: "here"},
		"another name":         {user: "providers: {box: {type: here}}", want: "box"},
		"launch":               {user: profiles + "launch: test", want: "test"},
		"variable":             {user: profiles + "launch: test", env: "prod", want: "prod"},
		"flag":                 {user: profiles + "launch: test", env: "prod", flag: "here", want: "here"},
		"use does not matter":  {user: profiles + "use: [prod]", want: "here"},
		"several":              {user: profiles, flag: "prod,test", kind: fault.KindUsage},
		"production by launch": {user: profiles + "launch: prod\nproduction: [prod]", kind: fault.KindRefused},
		"production by env":    {user: profiles + "production: [prod]", env: "prod", kind: fault.KindRefused},
		"production by flag":   {user: profiles + "production: [prod]", flag: "prod", want: "prod"},
		"local production":     {user: "production: [here]", kind: fault.KindRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.user(tc.user)
			w.env = append(w.env, "SBX_PROVIDER="+tc.env)
			if tc.flag != "" {
				w.flags["provider"] = tc.flag
			}
			p, err := w.must().LaunchTarget()
			assert.Equal(t, tc.kind, fault.KindOf(err))
			assert.Equal(t, tc.want, p.Name)
			if err != nil {
				assert.NotEmpty(t, fault.HintOf(err))
			}
		})
	}
}

func TestLaunchTargetWithoutAnyProfile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := w.input()
	in.Types = nil
	c, err := Load(t.Context(), in)
	require.NoError(t, err)
	_, err = c.LaunchTarget()
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
}

func TestLaunchIsWhatIsAlwaysThereWhateverTheOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "CLOUD_KEY=k")
	in := w.input()
	slices.Reverse(in.Types)
	c, err := Load(t.Context(), in)
	require.NoError(t, err)
	assert.Equal(t, "here", c.Launch)
}

func TestFindIsExact(t *testing.T) {
	t.Parallel()
	c := newWorld(t).must()
	for name, want := range map[string]bool{"here": true, "her": false, "Here": false, "": false} {
		_, ok := c.Find(name)
		assert.Equal(t, want, ok, name)
	}
}

func TestProductionOfASwitchedOffTypeIsNoMistake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("production: [cloud]")
	assert.Equal(t, []string{"cloud"}, w.must().Production)
	w.env = append(w.env, "CLOUD_KEY=k")
	p, _ := w.must().Find("cloud")
	assert.True(t, p.Production)
}
