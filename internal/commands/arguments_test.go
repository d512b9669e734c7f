package commands

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestAfterDash(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refs int
		args []string
		says string // "" = taken
	}{
		"command":            {0, []string{"--", "sleep", "60"}, ""},
		"ref and command":    {1, []string{"aaaa", "--", "ls", "-l"}, ""},
		"no dashes":          {0, []string{"sleep", "60"}, "two dashes"},
		"ref, no dashes":     {1, []string{"aaaa", "ls"}, "two dashes"},
		"word before dashes": {0, []string{"x", "--", "ls"}, "1 words too many"},
		"two refs":           {1, []string{"a", "b", "--", "ls"}, "1 words too many"},
		"nothing":            {0, nil, "no command"},
		"only dashes":        {0, []string{"--"}, "no command"},
		"no ref":             {1, nil, "no sandbox"},
		"ref behind dashes":  {1, []string{"--", "aaaa", "ls"}, "no sandbox"},
		"ref alone":          {1, []string{"aaaa"}, "no command"},
		"ref and dashes":     {1, []string{"aaaa", "--"}, "no command"},
		"empty command":      {0, []string{"--", ""}, "no command"},
		"empty argument":     {0, []string{"--", "echo", ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := &cobra.Command{
				Use: "verb", SilenceErrors: true, SilenceUsage: true,
				Args: afterDash(tc.refs, "sbx verb -- ls"), RunE: func(*cobra.Command, []string) error { return nil },
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
			assert.Equal(t, "write it like this: sbx verb -- ls", fault.HintOf(err))
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
