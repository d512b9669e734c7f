package kubernetes_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/wiretest"
)

// A rule of the cluster answers with 403, as the lack of a right does.
func TestARuleIsNoRight(t *testing.T) {
	t.Parallel()
	for status, said := range map[int]string{
		http.StatusForbidden:           `admission webhook "guard.example" denied the request: the label team is missing`,
		http.StatusUnprocessableEntity: `pods "p" is forbidden: ValidatingAdmissionPolicy "teams" with binding "all" denied request: the label team is missing`,
	} {
		t.Run(said, func(t *testing.T) {
			t.Parallel()
			checkRule(t, status, said)
		})
	}
	missing := kubernetestest.New(t, kubernetestest.Options{Virtual: true, Refuse: []string{"delete pods"}})
	other := dialed(t, missing)
	defer other.Close()
	id := missing.Add(kubernetestest.Seed{})
	assert.Equal(t, fault.KindAuth, fault.KindOf(other.Terminate(t.Context(), id, providers.TerminateOptions{})))
	missing.Break(wiretest.Fault{Route: execRoute, Status: http.StatusForbidden, Body: `{"message":"the session of the gateway has ended"}`})
	_, gateway := other.Exec(t.Context(), id, providers.Command{Args: []string{"true"}})
	assert.Equal(t, fault.KindAuth, fault.KindOf(gateway), "no rule of the cluster says so: %v", gateway)
}

func checkRule(t *testing.T, status int, said string) {
	t.Helper()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	c := dialed(t, f)
	defer c.Close()
	id := f.Add(kubernetestest.Seed{})
	denied := wiretest.Fault{Status: status, Body: `{"kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"` + jsonText(said) + `"}`}
	for _, route := range []string{"DELETE " + podsRoute + "/{name}", "PATCH " + podsRoute + "/{name}", execRoute} {
		denied.Route = route
		f.Break(denied)
	}
	_, labels := c.EditLabels(t.Context(), id, func(l map[string]string) { l["sbx/keep"] = "true" })
	_, exec := c.Exec(t.Context(), id, providers.Command{Args: []string{"true"}})
	ending := ends(t, c, id, fleet.EndOptions{})
	for what, err := range map[string]error{
		"terminate": fleet.Verdict([]sandbox.Ending{ending}, true), "keep": labels, "exec": exec, "the plan": c.Rehearse(t.Context(), id, providers.TerminateOptions{}),
	} {
		assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%s: %v", what, err)
		require.ErrorContains(t, err, said, what)
		assert.Contains(t, fault.HintOf(err), "not the lack of a right", what)
	}
}

func jsonText(s string) string { return string(bytes.ReplaceAll([]byte(s), []byte(`"`), []byte(`\"`))) }
