package config

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
)

func TestNormalise(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind providers.OptionKind
		text string
		want string // "" = refused
	}{
		{providers.OptionText, "x y", "x y"},
		{providers.OptionText, "", ""},
		{providers.OptionText, "a\nb", ""},
		{providers.OptionBool, "true", "true"},
		{providers.OptionBool, "True", ""},
		{providers.OptionCount, "1000000", "1000000"},
		{providers.OptionCount, "1000001", ""},
		{providers.OptionCount, "0x10", ""},
		{providers.OptionCount, "99999999999999999999", ""},
		{providers.OptionSize, "2G", "2G"},
		{providers.OptionSize, "2g", "2g"},
		{providers.OptionDuration, "3d", "3d"},
		{providers.OptionDuration, "0s", ""},
		{kindPercent, "100%", "100%"},
		{kindPercent, "101%", ""},
		{kindPercent, "1%", "1%"},
		{kindPercent, "0%", ""},
		{kindPercent, "%", ""},
		{kindPercent, "25", ""},
		{kindCores, "2", "2"},
		{kindCores, "0.5", "0.5"},
		{kindCores, "1.125", "1.125"},
		{kindCores, "1000", "1000"},
		{kindCores, "1000.001", ""},
		{kindCores, "0", ""},
		{kindCores, "0.000", ""},
		{kindCores, "0.0001", ""},
		{kindCores, "2.", ""},
		{kindCores, ".5", ""},
		{kindCores, "-1", ""},
		{kindCores, "+1", ""},
		{kindCores, "1.-5", ""},
		{kindCores, "2 ", ""},
		{kindCores, "1e3", ""},
		{kindCores, "1.5.5", ""},
		{kindAddress, "https://h.example/x?y=z", "https://h.example/x?y=z"},
		{kindAddress, "h.example", ""},
		{kindAddress, "ftp://h.example", ""},
		{kindPlainWord, "registry.example/agent:1@sha256", "registry.example/agent:1@sha256"},
		{kindPlainWord, "a b", ""},
		{kindPlainWord, "a\u00a0b", ""},
		{kindPlainWord, "a\u202eb", ""},
		{kindPlainWord, "-f", ""},
		{providers.OptionArgs, "[a, 'b c']", `["a","b c"]`},
		{providers.OptionArgs, "[]", `[]`},
		{providers.OptionArgs, "a b", ""},
		{providers.OptionArgs, "[[a]]", ""},
		{providers.OptionArgs, "[~]", ""},
		{providers.OptionArgs, "[", ""},
		{providers.OptionArgs, "", ""},
		{providers.OptionMap, "{b: x, A.c: y}", `{"A.c":"y","b":"x"}`},
		{providers.OptionMap, "{a: x, a: y}", ""},
		{providers.OptionMap, "{a: [x]}", ""},
		{providers.OptionMap, "[a]", ""},
	} {
		got, err := normalizeText(tc.kind, tc.text)
		if tc.want == "" {
			require.Error(t, err, "%s %q gave %q", tc.kind, tc.text, got)
			continue
		}
		require.NoError(t, err, "%s %q", tc.kind, tc.text)
		assert.Equal(t, tc.want, got)
	}
}

func TestSamplesAreValid(t *testing.T) {
	t.Parallel()
	for _, kind := range []providers.OptionKind{
		providers.OptionText, providers.OptionDuration, providers.OptionSize, providers.OptionCount,
		providers.OptionBool, providers.OptionArgs, providers.OptionMap, kindPercent,
	} {
		_, err := normalizeText(kind, sampleOfKind(kind))
		assert.NoError(t, err, kind)
	}
}

func TestLimitsHaveValidDefaults(t *testing.T) {
	t.Parallel()
	for _, m := range limitSettings() {
		n, err := parseAmount(m.kind, cmp.Or(m.fallback, m.sample)) // without a default nobody has said anything
		require.NoError(t, err, m.name)
		assert.Positive(t, n)
	}
}

func TestBadDefaultOfATypeIsReported(t *testing.T) {
	t.Parallel()
	in := newWorld(t).input()
	in.Types[0].Options[0].Default = "plenty"
	_, err := Load(t.Context(), in)
	assert.ErrorContains(t, err, `default: memory: "plenty" is not a size`)
}

func TestProfileName(t *testing.T) {
	t.Parallel()
	long := make([]byte, 63)
	for i := range long {
		long[i] = 'a'
	}
	for name, good := range map[string]bool{
		"a": true, "0": true, "a-b_c9": true, string(long): true, string(long) + "a": false,
		"": false, "-a": false, "_a": false, "A": false, "a.b": false, "a/b": false, "a b": false, "ä": false,
	} {
		assert.Equal(t, good, profileName(name) == "", name)
	}
}

func TestVariableName(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{"A_1": true, "_": true, "a": true, "": false, "1A": false, "A-B": false, "A B": false, "Ä": false} {
		assert.Equal(t, good, variableName(name), name)
	}
}
