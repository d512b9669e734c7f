package commands

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestInspectOfSeveral: one page or document after the other, and the exit code of a list.
func TestInspectOfSeveral(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("aaaa0001", time.Minute), running("bbbb0001", time.Minute))
	r := b.run(t, "inspect prod/aaaa0001 prod/bbbb0001")
	require.Equal(t, 0, r.code, r.stderr)
	assert.Less(t, strings.Index(r.stdout, "prod/aaaa0001\n"), strings.Index(r.stdout, "\n\nprod/bbbb0001\n"))

	b.stdin = "prod/aaaa0001\nprod/bbbb0001\n"
	r = b.run(t, "inspect - -o json")
	require.Equal(t, 0, r.code, r.stderr)
	dec, ids := json.NewDecoder(strings.NewReader(r.stdout)), []string{}
	for dec.More() {
		var doc struct {
			Item struct {
				ID string `json:"id"`
			} `json:"item"`
		}
		require.NoError(t, dec.Decode(&doc))
		ids = append(ids, doc.Item.ID)
	}
	assert.Equal(t, []string{"aaaa0001", "bbbb0001"}, ids)

	r = b.run(t, "inspect prod/aaaa0001 prod/gone0001")
	assert.Equal(t, 3, r.code, "one of them is not there")
	assert.Equal(t, 1, strings.Count(r.stderr, "error:"), r.stderr)
	r = b.run(t, "inspect prod/gone0001 prod/gone0002")
	assert.Equal(t, 5, r.code, "none of them is there")
	assert.Equal(t, 2, strings.Count(r.stderr, "error:"), r.stderr)
}
