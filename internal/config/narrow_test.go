package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

const operator = `providers:
  prod: {type: cloud, token: a}
  test: {type: cloud, token: b}
use: [prod, here]
launch: here
production: [prod]
protect: {labels: {keep: "true"}, ids: [one]}
limits: {max_delete: 10, request_timeout: 30s}
`

func TestProjectMayNarrow(t *testing.T) {
	t.Parallel()
	for name, project := range map[string]string{
		"use": "use: [here]", "same use": "use: [here, prod]", "same launch": "launch: here", "same limits": "limits: {max_delete: 10, request_timeout: 30s}",
		"limits":     "limits: {max_delete: 9, max_fraction: 24%, concurrency: 1, request_timeout: 29s, provider_timeout: 1s}",
		"production": "production: [test, prod]", "protect": "protect: {labels: {keep: \"1\", x: y}, ids: [prod/two, one]}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.user(operator)
			w.project(project)
			c := w.must()
			require.Len(t, c.Files, 2)
			assert.False(t, c.Files[1].Trusted)
			assert.True(t, c.Files[1].Found)
		})
	}
}

func TestProjectAddsToTheGuards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user(operator)
	w.project("production: [test, prod]\nprotect: {labels: {keep: \"1\"}, ids: [prod/two, one]}")
	c := w.must()
	assert.Equal(t, []string{"prod", "test"}, c.Production)
	assert.Equal(t, []Label{{"keep", "true"}, {"keep", "1"}}, c.Protect.Labels, "both values protect")
	assert.Equal(t, []sandbox.Ref{{ID: "one"}, {Provider: "prod", ID: "two"}}, c.Protect.IDs)
	assert.Equal(t, "prod,test <- DIR/home/.config/sbx/config.yaml:6, DIR/home/project/.sbx.yaml:1", w.origin(c, "production"))
	assert.Equal(t, "keep=true,keep=1 <- DIR/home/.config/sbx/config.yaml:7, DIR/home/project/.sbx.yaml:2", w.origin(c, "protect.labels"))
	assert.Equal(t, "one,prod/two <- DIR/home/.config/sbx/config.yaml:7, DIR/home/project/.sbx.yaml:2", w.origin(c, "protect.ids"))
	p, _ := c.Find("test")
	assert.True(t, p.Production)
	p, _ = c.Find("here")
	assert.False(t, p.Production)
}

func TestProjectMayNotWiden(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ project, want string }{
		"profile":  {"providers: {x: {type: cloud, url: https://evil}}", "1:13: a project file may not configure provider profiles, here x"},
		"redirect": {"providers:\n  prod: {url: https://evil}", "2:3: a project file may not configure provider profiles, here prod"},
		"use":      {"use: [here, test]", "1:13: a project file may only choose among prod, here, not test"},
		"launch":   {"launch: prod", "1:9: a project file may not set where launches go, here to prod"},
		"count":    {"limits: {max_delete: 11}", "1:22: a project file may not raise limits.max_delete above 10, here to 11"},
		"default":  {"limits:\n  max_fraction: 26%", "2:17: a project file may not raise limits.max_fraction above 25%, here to 26%"},
		"duration": {"limits: {request_timeout: 1m}", "1:27: a project file may not raise limits.request_timeout above 30s, here to 1m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.user(operator)
			path := w.project(tc.project)
			assert.Equal(t, "DIR/home/project/.sbx.yaml:"+tc.want, w.fails())
			_, err := w.load()
			assert.Equal(t, fault.KindRefused, fault.KindOf(err))
			assert.Equal(t, "read the file; if it is right: sbx config trust "+path, fault.HintOf(err))
			trust(t, w, path)
			assert.True(t, w.must().Files[1].Trusted)
		})
	}
}

func TestAllWideningsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user(operator)
	w.project("limits: {max_delete: 11, concurrency: 17}\nlaunch: test\nuse: [test]\nproviders: {x: {type: cloud}}")
	_, err := w.load()
	require.Error(t, err)
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "joined refusals stay one kind")
	assert.Regexp(t, `(?s):1:22:.*:1:39:.*:2:9:.*:3:7:.*:4:13:`, err.Error())
}

func TestMistakesComeBeforeRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.project("limits: {max_delete: 900}\nlaunch: nowhere")
	_, err := w.load()
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
}

func TestFlagsMayWidenBeyondTheProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user(operator)
	w.project("use: [here]\nlimits: {max_delete: 1}")
	w.flags["provider"], w.flags["max-delete"] = "test", "500"
	c := w.must()
	assert.Equal(t, []string{"test"}, c.Use)
	assert.Equal(t, 500, c.Limits.MaxDelete)
}

func TestAllAreInUseWithoutAChoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("providers: {prod: {type: cloud, token: a}}")
	w.project("use: [prod]")
	assert.Equal(t, []string{"prod"}, w.must().Use)
}

func TestProjectMayNameTheLaunchThatHoldsAnyway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.project("launch: here")
	assert.Equal(t, "here", w.must().Launch)
	w.user("providers: {box: {type: here}}")
	w.project("launch: box")
	assert.Equal(t, "box", w.must().Launch)
}

func TestTrustedProjectLaunches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user(operator)
	trust(t, w, w.project("launch: test"))
	p, err := w.must().LaunchTarget()
	require.NoError(t, err)
	assert.Equal(t, "test", p.Name)
}
