package identity

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
)

func TestOffspringFollowsTheListsOfChildren(t *testing.T) {
	t.Parallel()
	many := make([]string, 1500)
	files := map[string]string{
		"1/stat":               line(1, "init", "S", 0),
		"1/task/1/children":    "10 ",
		"10/stat":              line(10, "threaded", "S", 1),
		"10/task/10/children":  "20 21 ",
		"10/task/11/children":  "22 10 99 ", // a ring, and one that has ended
		"20/stat":              line(20, "parent", "S", 10),
		"20/task/20/children":  "30 ",
		"21/stat":              line(21, "zombie", "Z", 10),
		"22/stat":              line(22, "wide", "S", 10),
		"30/stat":              line(30, "leaf", "S", 20),
		"30/task/30/children":  "",
		"500/stat":             line(500, "stranger", "S", 1),
		"500/task/500/comment": "not a list",
	}
	for i := range many {
		many[i] = strconv.Itoa(1000 + i)
		files[many[i]+"/stat"] = line(1000+i, "x", "S", 22)
	}
	files["22/task/22/children"] = strings.Join(many, " ") + " " // more than one read takes
	p := tree(t, files)
	found, err := p.Offspring(1)
	require.NoError(t, err)
	assert.Len(t, found, 5+len(many))
	assert.Subset(t, pidsOf(found), []int{10, 20, 21, 22, 30})
	assert.Equal(t, 10, found[0].PID, "nearest first")
	leaf, err := p.Offspring(30)
	require.NoError(t, err)
	assert.Empty(t, leaf)
}

func TestOffspringWithoutListsAsksTheWholeTable(t *testing.T) {
	t.Parallel()
	p := tree(t, map[string]string{
		"1/stat": line(1, "init", "S", 0), "10/stat": line(10, "a", "S", 1), "200/stat": line(200, "b", "S", 10),
	})
	found, err := p.Offspring(1)
	require.NoError(t, err)
	assert.Equal(t, []int{10, 200}, pidsOf(found))
	_, err = Proc{Root: "/nowhere"}.Offspring(1)
	require.Error(t, err)
}

func TestOffspringOfAProcess(t *testing.T) {
	t.Parallel()
	if !inNamespace(t) { // its end takes the grandchildren along
		return
	}
	c := spawn(t, nil, "sh", "-c", "sleep 600 & sh -c 'sleep 601 & echo $!; wait' & read x")
	deep, err := strconv.Atoi(c.line(t))
	require.NoError(t, err)
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		all, err := Host().Descendants(c.Process.Pid)
		require.NoError(t, err)
		found, err := Host().Offspring(c.Process.Pid)
		require.NoError(t, err)
		assert.Len(t, found, 3)
		assert.ElementsMatch(t, pidsOf(all), pidsOf(found))
		assert.Contains(t, pidsOf(found), deep)
	}, tiertest.Limit(t), time.Millisecond)
}

func TestAppendWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]int{
		"": nil, " ": nil, "1": {1}, "12 ": {12}, "1 22 333 ": {1, 22, 333}, "\n4\n": {4}, "99999999999": {9999999999},
	} {
		assert.Equal(t, want, appendWords(nil, []byte(text)), "%q", text)
	}
}

// BenchmarkDescendants and BenchmarkOffspring: the former grows with the
// machine, the latter with the tree.
func BenchmarkDescendants(b *testing.B) {
	for b.Loop() {
		if _, err := Host().Descendants(os.Getpid()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOffspring(b *testing.B) {
	for b.Loop() {
		if _, err := Host().Offspring(os.Getpid()); err != nil {
			b.Fatal(err)
		}
	}
}
