package identity

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestABirthIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	b := birth{"9f1c-02", 4026531836, 1234, 77}
	assert.Equal(t, "9f1c-02/4026531836/1234/77", b.String())
	back, err := parseBirth(b.String())
	require.NoError(t, err)
	assert.Equal(t, b, back)
	for _, text := range []string{
		"", "/", "///", "/1/2/3", "b", "b/1/2", "b/1/2/3/4", "b/1/2/x", "b/1/-2/3", "b/1/2/", "b/01/2/3", "b/+1/2/3", "b/1/2/3 ", "b/1/2/99999999999999999999",
	} {
		_, err := parseBirth(text)
		require.ErrorIs(t, err, ErrBirth, "%q", text)
		_, err = Lives(1, text)
		require.ErrorIs(t, err, ErrBirth, "%q", text)
	}
}

func FuzzBirth(f *testing.F) {
	f.Add("9f1c-02/4026531836/1234/77")
	f.Add("b/0/0/0")
	f.Add("b//1/")
	f.Fuzz(func(t *testing.T, text string) {
		if b, err := parseBirth(text); err == nil {
			assert.Equal(t, text, b.String(), "one process has one birth")
		}
	})
}
