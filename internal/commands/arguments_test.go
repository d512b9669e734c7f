package commands

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops"
)

func TestAfterDash(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		what string
		args []string
		says string // "" = taken
	}{
		"command":            {"", []string{"--", "sleep", "60"}, ""},
		"ref and command":    {"REF", []string{"aaaa", "--", "ls", "-l"}, ""},
		"no dashes":          {"", []string{"sleep", "60"}, "put -- before"},
		"ref, no dashes":     {"REF", []string{"aaaa", "ls"}, "put -- before"},
		"word before dashes": {"", []string{"x", "--", "ls"}, "too many words"},
		"two refs":           {"REF", []string{"a", "b", "--", "ls"}, "too many words"},
		"nothing":            {"", nil, "no command"},
		"only dashes":        {"", []string{"--"}, "no command"},
		"no ref":             {"REF", nil, "no REF"},
		"ref behind dashes":  {"REF", []string{"--", "aaaa", "ls"}, "no REF"},
		"ref alone":          {"REF", []string{"aaaa"}, "no command"},
		"ref and dashes":     {"REF", []string{"aaaa", "--"}, "no command"},
		"empty command":      {"", []string{"--", ""}, "no command"},
		"empty argument":     {"", []string{"--", "echo", ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := &cobra.Command{
				Use: "verb", SilenceErrors: true, SilenceUsage: true,
				Args: (&Deps{Env: &ops.Env{}}).afterDash(tc.what, "sbx verb -- ls"), RunE: func(*cobra.Command, []string) error { return nil },
			}
			cmd.SetArgs(tc.args)
			if tc.args == nil {
				cmd.SetArgs([]string{})
			}
			err := cmd.ExecuteContext(t.Context())
			if tc.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.says)
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
			assert.Equal(t, "write it like this: `sbx verb -- ls`", fault.HintOf(err))
		})
	}
}

func TestReadLabels(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   []string
		want map[string]string
		says string
	}{
		"none":           {nil, map[string]string{}, ""},
		"some":           {[]string{"a=1", "b=2=3", "c="}, map[string]string{"a": "1", "b": "2=3", "c": ""}, ""},
		"the last":       {[]string{"a=1", "a=2"}, map[string]string{"a": "2"}, ""},
		"no value":       {[]string{"a"}, nil, `"a" is not KEY=VALUE`},
		"no key":         {[]string{"=a"}, nil, "not KEY=VALUE"},
		"empty":          {[]string{""}, nil, "not KEY=VALUE"},
		"escape":         {[]string{"a=\x1b[2J"}, nil, `a=\x1b[2J`},
		"newline in key": {[]string{"a\nb=c"}, nil, `a\nb=c`},
		"bidi":           {[]string{"a=\u202e"}, nil, "invisible"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readLabels(tc.in)
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says)
				assert.Equal(t, fault.KindUsage, fault.KindOf(err))
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func FuzzReadLabels(f *testing.F) {
	for _, seed := range []string{"a=b", "=", "a", "a=\x1b", "ä=ö", "a==b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		labels, err := readLabels([]string{entry})
		if err != nil {
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
			assert.True(t, isPrintable(fault.HintOf(err)))
			return
		}
		for key, value := range labels {
			assert.Equal(t, entry, key+"="+value)
			assert.True(t, isPrintable(entry))
		}
	})
}
