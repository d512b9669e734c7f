package kubernetes_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/wiretest"
)

// deletes are the requests that delete, or would.
func deletes(f *kubernetestest.Fake) []wiretest.Call {
	var all []wiretest.Call
	for _, call := range f.Calls("") {
		if strings.HasPrefix(call.Route, http.MethodDelete) {
			all = append(all, call)
		}
	}
	return all
}

// A rehearsal is the delete of the end, of the same object and with the same precondition, and nothing ends.
func TestRehearsalIsTheDeleteOfTheEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		id       func(*cluster) string
		requests int // the reads of Terminate, and the delete
	}{
		"pod":             {func(k *cluster) string { return k.pod }, 2},
		"job":             {func(k *cluster) string { return k.job }, 2},
		"claim":           {func(k *cluster) string { return k.claim }, 2},
		"sandbox":         {func(k *cluster) string { return k.sandbox }, 2},
		"claimed sandbox": {func(k *cluster) string { return k.claimed }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newCluster(t, kubernetestest.Options{Virtual: true})
			before, o := list(t, k.c), providers.TerminateOptions{Grace: 7 * time.Second}
			counted := k.Counter()
			first := counted()
			require.NoError(t, k.c.Rehearse(t.Context(), tc.id(k), o))
			assert.Equal(t, tc.requests, counted()-first)
			assert.Equal(t, before, list(t, k.c), "nothing is being deleted")
			require.NoError(t, k.c.Terminate(t.Context(), tc.id(k), o))
			sent := deletes(k.Fake)
			require.Len(t, sent, 2)
			var rehearsed, ended map[string]any
			require.NoError(t, json.Unmarshal(sent[0].Body, &rehearsed))
			require.NoError(t, json.Unmarshal(sent[1].Body, &ended))
			assert.Equal(t, []any{"All"}, rehearsed["dryRun"])
			delete(rehearsed, "dryRun")
			assert.Equal(t, ended, rehearsed)
			assert.Equal(t, sent[1].URL, sent[0].URL)
		})
	}
}

func TestRefusedRehearsals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*kubernetestest.Options)
		kind   fault.Kind // of the rehearsal; refused = the target is
		says   string
	}{
		"allowed":              {func(*kubernetestest.Options) {}, fault.KindNone, ""},
		"without the right":    {func(o *kubernetestest.Options) { o.Refuse = []string{"delete jobs"} }, fault.KindRefused, `cannot delete resource "jobs"`},
		"denied":               {func(o *kubernetestest.Options) { o.Deny = http.StatusForbidden }, fault.KindRefused, "build is under legal hold"},
		"denied as a conflict": {func(o *kubernetestest.Options) { o.Deny = http.StatusConflict }, fault.KindRefused, "legal hold"},
		"denied as invalid":    {func(o *kubernetestest.Options) { o.Deny = http.StatusUnprocessableEntity }, fault.KindRefused, "legal hold"},
		"denied as bad":        {func(o *kubernetestest.Options) { o.Deny = http.StatusBadRequest }, fault.KindRefused, "legal hold"},
		"no dry runs":          {func(o *kubernetestest.Options) { o.NoDryRun = true }, fault.KindUnknown, "does not support dry run"},
		"an outage":            {func(o *kubernetestest.Options) { o.Deny = http.StatusInternalServerError }, fault.KindUnavailable, ""},
		"too many requests":    {func(o *kubernetestest.Options) { o.Deny = http.StatusTooManyRequests }, fault.KindUnavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			id := f.Add(kubernetestest.Seed{Kind: "job", Name: "build"})
			c := dialed(t, f)
			defer c.Close()
			f.Change(tc.change)
			err := c.Rehearse(t.Context(), id, providers.TerminateOptions{})
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says)
			}
			require.Len(t, list(t, c), 1)
			if tc.kind == fault.KindRefused {
				require.Error(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}), "the end is refused, too")
			}
		})
	}
}

// What a controller would replace, what is stock and what has ended needs no request to be refused.
func TestRehearsalsOfWhatIsNotEnded(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	stock := f.Add(kubernetestest.Seed{Kind: "sandbox", Owner: f.Add(kubernetestest.Seed{Kind: "pool"})})
	over := f.Add(kubernetestest.Seed{Kind: "job", Phase: "Succeeded"})
	c := dialed(t, f)
	defer c.Close()
	for id, want := range map[string]fault.Kind{stock: fault.KindRefused, over: fault.KindGone, "pod.nothing.0a1b2c3d": fault.KindNotFound} {
		err := c.Rehearse(t.Context(), id, providers.TerminateOptions{})
		assert.Equal(t, want, fault.KindOf(err), "%v", err)
	}
	assert.Empty(t, deletes(f))
	require.NoError(t, c.Rehearse(t.Context(), over, providers.TerminateOptions{Delete: true}))
}

// The fake checks the unique id of a dry run, too.
func TestDryRunOfAnotherObject(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	f.Add(kubernetestest.Seed{Name: "agent"})
	for uid, want := range map[string]int{"00000000-0000-4000-8000-000000000000": http.StatusConflict, uidOf(t, f): http.StatusOK} {
		body := `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":1,"propagationPolicy":"Foreground","dryRun":["All"],"preconditions":{"uid":"` + uid + `"}}`
		assert.Equal(t, want, serve(f, http.MethodDelete, body).Code)
	}
	assert.Equal(t, http.StatusOK, serve(f, http.MethodGet, "").Code, "it is there")
}

func serve(f *kubernetestest.Fake, method, body string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, "/api/v1/namespaces/agents/pods/agent", bytes.NewReader([]byte(body)))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	f.ServeHTTP(w, r)
	return w
}

func uidOf(t *testing.T, f *kubernetestest.Fake) string {
	t.Helper()
	var o struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	require.NoError(t, json.Unmarshal(serve(f, http.MethodGet, "").Body.Bytes(), &o))
	return o.Metadata.UID
}
