package wiretest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/wiretest"
)

func TestExemptionsAreRead(t *testing.T) {
	t.Parallel()
	all, err := wiretest.ParseExemptions(strings.NewReader("\n# why\nGET host/a  for a reason\nPOST /b it is so\n"))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"GET host/a": "for a reason", "POST /b": "it is so"}, all)
	for _, text := range []string{"GET /a", "GET a reason", "GET /a x\nGET /a y"} {
		_, err := wiretest.ParseExemptions(strings.NewReader(text))
		require.Error(t, err, "%q", text)
	}
}

// TestALiteralPartIsNoParameter: a route that only looks like one of the
// description's is another call.
func TestALiteralPartIsNoParameter(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		template, path, route string
		matches, covers       bool
	}{
		{"/boxes/{id}", "/boxes/a", "/boxes/{box}", true, true},
		{"/boxes/{id}", "/boxes/quota", "/boxes/quota", true, false},
		{"/boxes/quota", "/boxes/quota", "/boxes/quota", true, true},
		{"/boxes/{id}", "/boxes/", "/boxes/{id}", false, true},
		{"/boxes/{id}", "/boxes/a/b", "/boxes/{id}/b", false, false},
		{"/boxes/{id}", "/boxes/a%2Fb", "/boxes/{id}", true, true},
		{"/boxes/{id}", "/boxes/%zz", "/boxes/{id}", false, true},
	} {
		params, _, ok := wiretest.MatchPath(tc.template, tc.path)
		assert.Equal(t, tc.matches, ok, "%s is %s", tc.path, tc.template)
		assert.Equal(t, tc.covers, wiretest.Covers(tc.template, tc.route), "%s covers %s", tc.template, tc.route)
		if strings.HasSuffix(tc.path, "%2Fb") {
			assert.Equal(t, map[string]string{"id": "a/b"}, params)
		}
	}
	_, most, _ := wiretest.MatchPath("/boxes/quota", "/boxes/quota")
	_, fewer, _ := wiretest.MatchPath("/boxes/{id}", "/boxes/quota")
	assert.Greater(t, most, fewer, "what is literal is closer")
}
