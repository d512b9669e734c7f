package fault

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	choices := []string{"running", "paused", "stopped", "age"}
	for word, want := range map[string]string{
		"runnin":  "running", // one missing
		"runnnig": "running", // neighbours swapped
		"RUNNING": "running",
		"pasued":  "paused",
		"stoped":  "stopped",
		"ag":      "", // one edit of two characters is a guess, not a slip
		"agee":    "age",
		"r":       "",
		"":        "",
		"deleted": "",
		"runn":    "", // three edits
	} {
		assert.Equal(t, want, Nearest(word, choices), "%q", word)
	}
	assert.Empty(t, Nearest("prune", []string{"run"}), "two edits of five characters make another word")
	long := strings.Repeat("a", 64)
	assert.Equal(t, long, Nearest(long, []string{long}))
	assert.Empty(t, Nearest(long+"a", []string{long, long + "a"}), "a longer word is not compared")
	assert.Equal(t, "ab", Nearest("abc", []string{"ab", "abcd"}), "of equally near ones the first")
}

func TestMeant(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "did you mean age? allowed: age, name", Meant("agee", []string{"age", "name"}))
	assert.Equal(t, "allowed: age, name", Meant("zzz", []string{"age", "name"}))
}

func FuzzNearest(f *testing.F) {
	f.Add("runnin", "running")
	f.Add("\xff", "a")
	f.Fuzz(func(t *testing.T, word, choice string) {
		if len(word)+len(choice) > 200 {
			t.Skip("long words only cost time")
		}
		if got := Nearest(word, []string{choice}); got != "" && got != choice {
			t.Fatalf("Nearest(%q, %q) = %q", word, choice, got)
		}
	})
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"a", "", 1},
		{"", "abc", 3},
		{"use", "use", 0},
		{"usee", "use", 1},
		{"ues", "use", 1},
		{"jsno", "json", 1},
		{"limts", "limits", 1},
		{"kitten", "sitting", 3},
		{"größe", "grösse", 2},
	} {
		assert.Equal(t, tc.want, editDistance(tc.a, tc.b), tc.a+" "+tc.b)
		assert.Equal(t, tc.want, editDistance(tc.b, tc.a), "both ways")
	}
}
