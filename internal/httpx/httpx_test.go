package httpx_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
)

func open(t *testing.T, serve http.HandlerFunc, o httpx.Options) *httpx.Client {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	o.Base, o.Profile = server.URL, "prod"
	c, err := httpx.New(httpx.Net{}, o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestAGetIsRepeatedAndAPostIsNot(t *testing.T) {
	t.Parallel()
	calls := 0
	c := open(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls%2 == 1 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write([]byte(`{"a":1}`))
	}, httpx.Options{})
	var got struct{ A int }
	_, err := c.JSON(t.Context(), httpx.Request{Op: "get a", Path: "/a"}, &got)
	require.NoError(t, err)
	assert.Equal(t, 1, got.A)
	assert.Equal(t, 2, calls)
	_, err = c.Do(t.Context(), httpx.Request{Op: "make a", Method: http.MethodPost, Path: "/a", JSON: map[string]int{"a": 1}})
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
	assert.Equal(t, 502, httpx.Status(err))
	assert.Equal(t, 3, calls)
}
