package identity

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNumbers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want []int
	for i := range 700 { // more than one call gives
		n := 1 + 6133*i
		want = append(want, n)
		require.NoError(t, os.Mkdir(filepath.Join(dir, strconv.Itoa(n)), 0o700))
	}
	for _, name := range []string{"self", "1x", "x1", "-1", "+1", "12345678901", ".1", "0x10"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	got, err := listNumbers(dir)
	require.NoError(t, err)
	slices.Sort(got)
	assert.Equal(t, want, got)

	_, err = listNumbers(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = listNumbers(filepath.Join(dir, "self"))
	require.Error(t, err, "a file is no directory")
}

// entry is one directory entry as the kernel gives it.
func entry(name string) []byte {
	raw := make([]byte, (entryName+len(name)+1+7)/8*8)
	binary.NativeEndian.PutUint16(raw[entryLength:], uint16(len(raw)))
	copy(raw[entryName:], name)
	return raw
}

func FuzzAppendNumbers(f *testing.F) {
	f.Add(append(entry("1"), entry("4194304")...))
	f.Add(entry("self"))
	f.Add(entry("")[:20])
	f.Fuzz(func(t *testing.T, entries []byte) {
		for _, n := range appendNumbers(nil, entries) {
			if n < 0 || n > 9999999999 {
				t.Fatal(n)
			}
		}
	})
}

func TestAppendNumbersReadsEntries(t *testing.T) {
	t.Parallel()
	got := appendNumbers([]int{7}, slices.Concat(entry("1"), entry("."), entry("4194304"), entry("self")))
	assert.Equal(t, []int{7, 1, 4194304}, got)
}
