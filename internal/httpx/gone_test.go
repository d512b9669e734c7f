package httpx_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/httpx"
)

// TestGoneIsBelievedWhereItIsDocumented: a 410 of any other API is no proof and is not repeated.
func TestGoneIsBelievedWhereItIsDocumented(t *testing.T) {
	t.Parallel()
	for documented, want := range map[bool]fault.Kind{true: fault.KindGone, false: fault.KindUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			c, _ := client(t, func(w http.ResponseWriter, _ *http.Request) { asked++; w.WriteHeader(http.StatusGone) }, httpx.Options{Gone: documented})
			_, err := c.Do(t.Context(), httpx.Request{Op: "get a"})
			assert.Equal(t, want, fault.KindOf(err), "%v", err)
			assert.Equal(t, 1, asked)
		})
	}
}

// TestDottedPathsAreNotAsked: a proxy would resolve them to other paths.
func TestDottedPathsAreNotAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c, _ := client(t, func(http.ResponseWriter, *http.Request) { asked++ }, httpx.Options{})
		for _, id := range []string{".", "..", ""} {
			for _, path := range []string{httpx.Path("boxes", id), httpx.Path("boxes", id, "stop")} {
				for _, method := range []string{http.MethodGet, http.MethodDelete} {
					_, err := c.Do(t.Context(), httpx.Request{Op: "get", Method: method, Path: path})
					assert.Equal(t, fault.KindUsage, fault.KindOf(err), "%s: %v", path, err)
				}
			}
		}
		assert.Zero(t, asked)
		_, err := c.Do(t.Context(), httpx.Request{Op: "get", Path: httpx.Path("boxes", "...", ".a", "%2e%2e")})
		assert.NoError(t, err)
	})
}
