package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// FuzzDecode holds that the decoder alone never panics, and that each mistake
// has a place within the file.
func FuzzDecode(f *testing.F) {
	seeds, err := filepath.Glob("testdata/mistakes/*.yaml")
	require.NoError(f, err)
	for _, seed := range seeds {
		content, err := os.ReadFile(seed)
		require.NoError(f, err)
		f.Add(content)
	}
	f.Add([]byte(operator))
	f.Fuzz(func(t *testing.T, content []byte) {
		doc, errs := decodeFile("/c.yaml", content, testTypes())
		require.False(t, doc == nil && len(errs) == 0, "neither a document nor a mistake")
		for _, err := range errs {
			placed, ok := errors.AsType[*placedError](err)
			require.True(t, ok, err)
			require.Positive(t, placed.at.Line)
			require.Positive(t, placed.at.Column)
			require.LessOrEqual(t, placed.at.Line, len(content)+1)
		}
	})
}

// FuzzLoad holds that no content panics, that a config never stands beside an
// error and that what is accepted is within its bounds.
func FuzzLoad(f *testing.F) {
	seeds, err := filepath.Glob("testdata/mistakes/*.yaml")
	require.NoError(f, err)
	for _, seed := range seeds {
		content, err := os.ReadFile(seed)
		require.NoError(f, err)
		f.Add(content)
	}
	f.Add([]byte(operator))
	f.Add([]byte(runFile))
	f.Add([]byte(Starter(testTypes())))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "c.yaml")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		c, err := Load(t.Context(), Input{Types: testTypes(), File: path, Process: process.Process{Home: "/home/x"}})
		if err != nil {
			require.Nil(t, c)
			require.Equal(t, fault.KindUsage, fault.KindOf(err))
			require.NotEmpty(t, fault.HintOf(err))
			return
		}
		require.Positive(t, c.Limits.MaxDelete)
		require.Positive(t, c.Limits.RequestTimeout)
		r, err := c.Run()
		require.NoError(t, err, "no file breaks what only the environment can")
		for _, d := range []time.Duration{r.CommandTimeout, r.AttemptTimeout, r.Deadline, r.Inactivity, r.RetryDelay, r.KeepAliveTTL} {
			require.True(t, d >= time.Second && d <= 7*24*time.Hour, d)
		}
		require.True(t, r.Attempts >= 1 && r.Attempts <= 100)
		require.LessOrEqual(t, r.RetryDelay, RetryCap)
		_, err = r.Contradictions()
		require.True(t, err == nil || fault.KindOf(err) == fault.KindUsage)
		require.NotEmpty(t, c.Profiles)
		for _, name := range c.Use {
			_, ok := c.Find(name)
			require.True(t, ok, name)
		}
	})
}

func FuzzParsePercent(f *testing.F) {
	for _, seed := range []string{"25%", "0%", "101%", "%", "1.5%", "-3%", "25", "+1%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePercent(text)
		if err != nil {
			require.ErrorIs(t, err, sandbox.ErrMeasure)
			require.Zero(t, p)
			return
		}
		require.Positive(t, p)
		again, err := ParsePercent(p.String())
		require.NoError(t, err)
		require.Equal(t, p, again)
	})
}

func FuzzNormalise(f *testing.F) {
	for _, kind := range []providers.OptionKind{providers.OptionText, providers.OptionArgs, providers.OptionMap, providers.OptionBool, providers.OptionCount} {
		f.Add(string(kind), sampleOfKind(kind))
	}
	f.Add("map", "{a: 1, a: 2}")
	f.Add("args", "[*a]")
	f.Fuzz(func(t *testing.T, kind, text string) {
		got, err := normalizeText(providers.OptionKind(kind), text)
		if err == nil {
			again, err := normalizeText(providers.OptionKind(kind), got)
			require.NoError(t, err, "what comes out goes in again: %q", got)
			require.Equal(t, got, again)
		}
	})
}
