package process_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/process"
)

func TestLookupTakesTheLastOne(t *testing.T) {
	t.Parallel()
	p := process.Process{Environ: []string{"A=1", "B=", "A=2", "broken", "C=x=y"}}
	for key, want := range map[string]string{"A": "2", "B": "", "C": "x=y"} {
		got, ok := p.Lookup(key)
		assert.True(t, ok)
		assert.Equal(t, want, got)
	}
	_, ok := p.Lookup("broken")
	assert.False(t, ok)
	assert.Empty(t, p.Getenv("D"))
}

func TestName(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{"/usr/bin/sbx": "sbx", "sbx": "sbx", `C:\tools\boxes.exe`: "boxes", "./other": "other"} {
		assert.Equal(t, want, process.Process{Args: []string{arg}}.Name())
	}
	assert.Equal(t, "sbx", process.Process{}.Name())
}

func TestStreamsWithoutAnythingBehindThem(t *testing.T) {
	t.Parallel()
	var none process.Stream
	n, err := none.Write([]byte("abc"))
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	_, err = none.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)

	var out bytes.Buffer
	s := process.Stream{Reader: strings.NewReader("in"), Writer: &out}
	_, err = io.Copy(s, s)
	require.NoError(t, err)
	assert.Equal(t, "in", out.String())
}
