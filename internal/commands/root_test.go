package commands

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUnknownVerbsNameTheNearestOne(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"lss":       "did you mean `sbx ls`?", // `logs` stands before it and is two edits away
		"lsit":      "did you mean `sbx list`?",
		"terminat":  "did you mean `sbx terminate`?",
		"term":      "did you mean `sbx terminate`?",
		"frobnicat": "`sbx --help` lists the commands",
	} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			r := newBench().run(t, word)
			assert.Equal(t, 2, r.code)
			assert.Empty(t, r.stdout)
			assert.Contains(t, r.stderr, want)
		})
	}
}
