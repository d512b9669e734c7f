package identity

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const pageSize = 4096

// line is one /proc/PID/stat, cut after the last field that is read.
func line(pid int, comm, state string, ppid int) string {
	n := strconv.Itoa
	return n(pid) + " (" + comm + ") " + state + " " + n(ppid) +
		" 1 1 0 -1 4194304 98 0 0 0 7 5 0 0 20 0 2 0 80882 3133440 390 18446744073709551615"
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	for name, comm := range map[string]string{
		"plain":        "cat",
		"empty":        "",
		"blank":        "tmux: server",
		"parentheses":  "a) R 1 (b",
		"line end":     "two\nlines",
		"only shut":    ")))",
		"looks like a": ") S 1 1 1 0 -1",
		"no UTF-8":     "\xff\xfe",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := parseStat([]byte(line(42, comm, "S", 7)), pageSize)
			require.NoError(t, err)
			assert.Equal(t, Stat{
				PID: 42, PPID: 7, State: 'S', Threads: 2, StartTicks: 80882,
				RSSBytes: 390 * pageSize, UTimeSTimeTicks: 12, Comm: comm,
			}, s)
		})
	}
}

func TestParseStatRefuses(t *testing.T) {
	t.Parallel()
	whole := line(42, "cat", "S", 7)
	for name, text := range map[string]string{
		"empty":          "",
		"no name":        "42 S 7",
		"open only":      "42 (cat S 7",
		"shut first":     "42 )cat( S 7",
		"no number":      strings.Replace(whole, "42", "x", 1),
		"number zero":    strings.Replace(whole, "42", "0", 1),
		"torn":           whole[:strings.Index(whole, " 390")],
		"long state":     strings.Replace(whole, ") S ", ") SS ", 1),
		"parent":         strings.Replace(whole, ") S 7", ") S x", 1),
		"negative start": strings.Replace(whole, " 80882", " -80882", 1),
		"huge start":     strings.Replace(whole, " 80882", " 99999999999999999999", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseStat([]byte(text), pageSize)
			require.ErrorIs(t, err, errStat)
		})
	}
}

func TestDead(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		state   byte
		threads int
		want    bool
	}{
		{'R', 1, false},
		{'S', 0, false},
		{'D', 4, false},
		{'T', 1, false},
		{'Z', 0, true},
		{'Z', 1, true},
		{'X', 0, true},
		{'Z', 2, false}, // the main thread ended, another one runs
	} {
		assert.Equal(t, tc.want, Stat{State: tc.state, Threads: tc.threads}.Dead(), "%c with %d threads", tc.state, tc.threads)
	}
}

func TestScaled(t *testing.T) {
	t.Parallel()
	assert.Equal(t, int64(8192), pagesToBytes(2, pageSize))
	assert.Equal(t, int64(0), pagesToBytes(-3, pageSize))
	assert.Equal(t, int64(0), pagesToBytes(3, 0))
	assert.Equal(t, int64(math.MaxInt64), pagesToBytes(math.MaxInt64/2, pageSize))
}

// FuzzParseStat feeds anything: no panic, and what is accepted makes sense.
func FuzzParseStat(f *testing.F) {
	f.Add([]byte(line(42, "a) R 1 (b", "S", 7)))
	f.Add([]byte("1 () S"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseStat(text, pageSize)
		if err != nil {
			assert.Equal(t, Stat{}, s)
			return
		}
		assert.Positive(t, s.PID)
		assert.GreaterOrEqual(t, s.RSSBytes, int64(0))
		assert.Contains(t, string(text), "("+s.Comm+")")
	})
}

// FuzzStatName proves that no name can forge the fields behind it.
func FuzzStatName(f *testing.F) {
	f.Add("a) R 1 (b", 7)
	f.Add("x\n1 (y) Z 0", 1)
	f.Fuzz(func(t *testing.T, comm string, ppid int) {
		s, err := parseStat([]byte(line(42, comm, "S", ppid)), pageSize)
		require.NoError(t, err)
		assert.Equal(t, comm, s.Comm)
		assert.Equal(t, ppid, s.PPID)
		assert.Equal(t, byte('S'), s.State)
		assert.Equal(t, uint64(80882), s.StartTicks)
	})
}
