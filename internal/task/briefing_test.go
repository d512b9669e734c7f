package task

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnAgentIsToldWhatItWorksOn(t *testing.T) {
	t.Parallel()
	const url = "https://control.example/done"
	spec := func(do func(*Spec)) Spec { s := Spec{Provider: "p"}; do(&s); return s }
	full := spec(func(s *Spec) { s.Push, s.Description, s.Callback = "https://h/a=b.git=fix/x", "mend \"it\"", true })
	for name, c := range map[string]struct {
		spec Spec
		own  []string
		want []string
		data string
	}{
		"a bare command":        {Spec{}, []string{"A=1"}, []string{"A=1"}, ""},
		"no address of ours":    {Spec{}, nil, nil, ""},
		"a branch":              {spec(func(s *Spec) { s.Push = "origin=fix/x" }), nil, []string{"BRANCH_NAME=fix/x"}, `{"task":"t-1","description":"","branch":"fix/x"}`},
		"a description":         {spec(func(s *Spec) { s.Description = "mend it" }), nil, []string{"TASK_DESCRIPTION=mend it"}, `{"task":"t-1","description":"mend it","branch":""}`},
		"everything":            {full, []string{"A=1"}, []string{"A=1", "BRANCH_NAME=fix/x", "TASK_DESCRIPTION=mend \"it\"", "CALLBACK_URL=" + url}, `{"task":"t-1","description":"mend \"it\"","branch":"fix/x"}`},
		"the operator's own":    {full, []string{"BRANCH_NAME=mine", "CALLBACK_URL="}, []string{"BRANCH_NAME=mine", "CALLBACK_URL=", "TASK_DESCRIPTION=mend \"it\""}, `{"task":"t-1","description":"mend \"it\"","branch":"fix/x"}`},
		"who took it over":      {full, nil, []string{"BRANCH_NAME=fix/x", "TASK_DESCRIPTION=mend \"it\"", "CALLBACK_URL=" + url}, `{"task":"t-1","description":"mend \"it\"","branch":"fix/x"}`},
		"a publication by hand": {spec(func(s *Spec) { s.Publish = "make X=1 release" }), nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := NewRunner(Options{CallbackURL: url}, c.own, nil)
			env := r.programEnvironment(Task{ID: "t-1", Spec: c.spec})
			data := ""
			if n := len(env); n > 0 && strings.HasPrefix(env[n-1], "TASK_DATA_BASE64=") {
				raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(env[n-1], "TASK_DATA_BASE64="))
				require.NoError(t, err)
				data, env = string(raw), env[:n-1]
			}
			assert.Equal(t, c.data, data)
			assert.ElementsMatch(t, c.want, env)
			assert.Empty(t, c.spec.EnvNames, "a retry needs nobody's environment for them")
		})
	}
}
