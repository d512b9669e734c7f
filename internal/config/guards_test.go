package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func TestOwns(t *testing.T) {
	t.Parallel()
	both := map[string]string{"a": "b", "sbx/owner": ""}
	for name, tc := range map[string]struct {
		rule   Owned
		labels map[string]string
		want   bool
	}{
		"nothing said":     {Owned{}, both, false},
		"all":              {Owned{All: true}, nil, true},
		"has":              {Owned{Has: sandbox.LabelOwner}, both, true},
		"has not":          {Owned{Has: sandbox.LabelOwner}, map[string]string{"a": "b"}, false},
		"labels":           {Owned{Labels: map[string]string{"a": "b"}}, both, true},
		"other value":      {Owned{Labels: map[string]string{"a": "c"}}, both, false},
		"one of two":       {Owned{Labels: map[string]string{"a": "b", "c": "d"}}, both, false},
		"empty is a value": {Owned{Labels: map[string]string{"c": ""}}, both, false},
		"no labels":        {Owned{Labels: map[string]string{"a": "b"}}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, tc.rule.Owns(tc.labels))
		})
	}
	assert.Equal(t, "a=b, c=d", Owned{Labels: map[string]string{"c": "d", "a": "b"}}.String())
}

func TestCovers(t *testing.T) {
	t.Parallel()
	p := Protect{Labels: []Label{{"keep", "true"}, {"keep", "1"}}, IDs: []sandbox.Ref{{ID: "any"}, {Provider: "prod", ID: "one"}}}
	for name, tc := range map[string]struct {
		ref    sandbox.Ref
		labels map[string]string
		want   bool
	}{
		"nothing":        {sandbox.Ref{Provider: "x", ID: "y"}, nil, false},
		"label":          {sandbox.Ref{Provider: "x", ID: "y"}, map[string]string{"keep": "1"}, true},
		"other value":    {sandbox.Ref{Provider: "x", ID: "y"}, map[string]string{"keep": "2"}, false},
		"id anywhere":    {sandbox.Ref{Provider: "x", ID: "any"}, nil, true},
		"id there":       {sandbox.Ref{Provider: "prod", ID: "one"}, nil, true},
		"id elsewhere":   {sandbox.Ref{Provider: "test", ID: "one"}, nil, false},
		"prefix is none": {sandbox.Ref{Provider: "x", ID: "anyone"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, p.Covers(sandbox.Sandbox{Provider: tc.ref.Provider, ID: tc.ref.ID, Labels: tc.labels}))
		})
	}
}

func TestPercentExceeded(t *testing.T) {
	t.Parallel()
	assert.False(t, Percent(25).Exceeded(5, 20), "exactly the share is within")
	assert.True(t, Percent(25).Exceeded(6, 20))
	assert.True(t, Percent(25).Exceeded(1, 0), "anything of nothing is too much")
	assert.False(t, Percent(100).Exceeded(3, 3))
}

// TestWhatIsProtectedIsNamedLikeAnywhere: by its id, its name or the beginning of its id.
func TestWhatIsProtectedIsNamedLikeAnywhere(t *testing.T) {
	t.Parallel()
	box := sandbox.Sandbox{Provider: "docker", ID: "6f60d90e1d1dca", Name: "web"}
	for id, want := range map[string]bool{
		"docker/6f60d90e1d1dca": true, "docker/web": true, "web": true, "docker/6f60d90e1d1d": true, "6f60": true,
		"docker/6f6": false, "other/web": false, "docker/we": false, "docker/websites": false, "6f60d90e1d1dcab": false,
	} {
		ref, err := sandbox.ParseRef(id)
		require.NoError(t, err)
		assert.Equal(t, want, Protect{IDs: []sandbox.Ref{ref}}.Covers(box), id)
	}
}
