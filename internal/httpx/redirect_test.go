package httpx_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/testkit/bubble"
)

// TestRedirects: credentials are sent to the configured host only, and changing requests are not
// redirected.
func TestRedirects(t *testing.T) {
	t.Parallel()
	to := func(where string) http.HandlerFunc { return text(http.StatusFound, "", "Location", where) }
	moved := text(http.StatusPermanentRedirect, "", "Location", "/v1/b")
	get, head, del, post := http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodPost
	for name, tc := range map[string]struct {
		method string
		answer http.HandlerFunc
		says   string // "" = it is followed
		asked  int
	}{
		"same host":             {get, each(to("/v1/b"), text(200, "")), "", 2},
		"same host, head":       {head, each(to("/v1/b"), text(200, "")), "", 2},
		"same host, in full":    {get, each(to("http://API.example/v1/b"), text(200, "")), "", 2},
		"three times":           {get, each(to("/b"), to("/c"), to("/d"), text(200, "")), "", 4},
		"four times":            {get, each(to("/b"), to("/c"), to("/d"), to("/e"), text(200, "")), "it redirects more than 3 times", 4},
		"another host":          {get, to("http://evil.example/steal?x=1"), "it redirects to http://evil.example, which is not followed", 1},
		"another port":          {get, to("http://api.example:81/"), "it redirects to http://api.example:81, which is not followed", 1},
		"a host that begins so": {get, to("http://api.example.evil.example/"), "it redirects to http://api.example.evil.example", 1},
		"on the second hop":     {get, each(to("/b"), to("//evil.example/")), "it redirects to http://evil.example", 2},
		"a post":                {post, to("/v1/b"), "it redirects a POST, which is not followed", 1},
		"a post, to be kept":    {post, moved, "it redirects a POST, which is not followed", 1},
		"a delete":              {del, moved, "it redirects a DELETE, which is not followed", 1},
		"nowhere":               {get, text(http.StatusFound, ""), "HTTP 302: Found", 1},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			c, m := client(t, tc.answer, httpx.Options{})
			_, err := c.Do(t.Context(), httpx.Request{Op: "get a", Method: tc.method, Path: "/a"})
			assert.Len(t, m.requests(), tc.asked)
			for _, r := range m.requests() {
				assert.Equal(t, secret, r.Header.Get("X-Api-Key"), "our own host gets the key")
			}
			for _, address := range m.dialed {
				assert.Contains(t, []string{"api.example:80", "API.example:80"}, address)
			}
			if tc.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "prod: get a: "+tc.says)
			assert.NotEmpty(t, tc.says == "it redirects more than 3 times" || fault.HintOf(err) != "")
		})
	}
}

// TestTheClientUnderneathFollowsTheSameRules, and so does a stream.
func TestTheClientUnderneathFollowsTheSameRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, m := client(t, text(http.StatusFound, "", "Location", "http://evil.example/"), httpx.Options{})
		_, err := c.Stream(t.Context(), httpx.Request{Op: "a"})
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Base(), nil)
		require.NoError(t, err)
		res, err := c.HTTP().Do(req)
		require.ErrorContains(t, err, "which is not followed")
		if res != nil {
			require.NoError(t, res.Body.Close())
		}
		assert.Len(t, m.requests(), 2)
	})
}
