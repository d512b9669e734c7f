package runlog

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// How fast a program's output is taken in, in pieces as a pipe gives them.
func BenchmarkWriter(b *testing.B) {
	for name, line := range map[string]string{
		"short lines": "GET /healthz 200\n",
		"lines":       strings.Repeat("x", 99) + "\n",
		"no lines":    strings.Repeat("x", 100),
	} {
		b.Run(name, func(b *testing.B) {
			w := NewWriter(b.TempDir(), 32<<20)
			out := w.Stream(Stdout)
			piece := []byte(strings.Repeat(line, (32<<10)/len(line)))
			b.SetBytes(int64(len(piece)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = out.Write(piece)
			}
			require.NoError(b, w.Close())
			require.Zero(b, w.Dropped())
		})
	}
}

// benchLog is a log of 100 MB in both files.
func benchLog(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	w := NewWriter(dir, 128<<20)
	piece := strings.Repeat(strings.Repeat("x", 99)+"\n", 300)
	for range 100 << 20 / len(piece) {
		say(w.Stream(Stdout), "%s", piece)
	}
	require.NoError(b, w.Close())
	return dir
}

func BenchmarkTail(b *testing.B) {
	dir := benchLog(b)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range Read(b.Context(), dir, Query{Tail: 10}) {
			require.NoError(b, err)
			n++
		}
		require.Equal(b, 10, n)
	}
}

func BenchmarkRead(b *testing.B) {
	dir := benchLog(b)
	b.SetBytes(fileBytes(b, dir))
	for b.Loop() {
		for _, err := range Read(b.Context(), dir, Query{}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func fileBytes(b *testing.B, dir string) int64 {
	b.Helper()
	files, err := openPair(dir)
	require.NoError(b, err)
	defer files.closeFiles()
	older, err := openFileSize(files.older)
	require.NoError(b, err)
	current, err := openFileSize(files.current)
	require.NoError(b, err)
	return older + current
}
