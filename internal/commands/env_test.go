package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/process"
)

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func caller(workdir string, env ...string) *Deps {
	return &Deps{Env: &ops.Env{Process: process.Process{Environ: env, Workdir: workdir}}}
}

func TestEnvironmentIsReadInOrder(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "vars", "# comment\n\n  # indented\nA=1\r\nB=\"q\" # not a comment\nC=\r\nA=2\r\nD=x=y")
	for name, tc := range map[string]struct {
		flags envFlags
		want  []string
	}{
		"none":              {envFlags{}, nil},
		"entries":           {envFlags{entries: []string{"A=1", "B=", "C=x=y"}}, []string{"A=1", "B=", "C=x=y"}},
		"the caller's":      {envFlags{entries: []string{"TOKEN"}}, []string{"TOKEN=from here"}},
		"set but empty":     {envFlags{entries: []string{"EMPTY"}}, []string{"EMPTY="}},
		"the last":          {envFlags{entries: []string{"A=1", "B=2", "A=3"}}, []string{"A=3", "B=2"}},
		"file":              {envFlags{files: []string{path}}, []string{"A=2", `B="q" # not a comment`, "C=", "D=x=y"}},
		"entries beat file": {envFlags{files: []string{path}, entries: []string{"A=9"}}, []string{"A=9", `B="q" # not a comment`, "C=", "D=x=y"}},
		"from the workdir":  {envFlags{files: []string{filepath.Base(path)}, entries: []string{"D=z"}}, []string{"A=2", `B="q" # not a comment`, "C=", "D=z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.flags.readVariables(t.Context(), caller(filepath.Dir(path), "TOKEN=from here", "EMPTY="))
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestEnvironmentMistakesShowNoValue(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	for name, tc := range map[string]struct {
		flags envFlags
		says  string
	}{
		"unset":              {envFlags{entries: []string{"NOPE"}}, "--env NOPE: it is not set here"},
		"no name":            {envFlags{entries: []string{"A=1", "=" + secret}}, "number 2"},
		"a value for a name": {envFlags{entries: []string{secret + "/+" + secret}}, "number 1"},
		"empty":              {envFlags{entries: []string{""}}, "number 1"},
		"space in the name":  {envFlags{entries: []string{"A B=" + secret}}, "number 1"},
		"digit first":        {envFlags{entries: []string{"1A=" + secret}}, "number 1"},
		"NUL":                {envFlags{entries: []string{"A=" + secret + "\x00"}}, "--env A: the value holds a NUL byte"},
		"no file":            {envFlags{files: []string{""}}, "no file is named"},
		"missing file":       {envFlags{files: []string{"/nonexistent/vars"}}, "/nonexistent/vars"},
		"a folder":           {envFlags{files: []string{t.TempDir()}}, "directory"},
		"no K=V":             {envFlags{files: []string{writeFile(t, "v", "A=1\n"+secret+"\n")}}, "v:2: this line is not NAME=VALUE"},
		"export":             {envFlags{files: []string{writeFile(t, "v", "\n#\nexport A="+secret+"\n")}}, "v:3: "},
		"a key's middle":     {envFlags{files: []string{writeFile(t, "v", "K=-----BEGIN\nMIIE/"+secret+"==\n")}}, "v:2: "},
		"NUL in a file":      {envFlags{files: []string{writeFile(t, "v", "A="+secret+"\x00\n")}}, "v:1: "},
		"byte order mark":    {envFlags{files: []string{writeFile(t, "v", "\ufeffA="+secret+"\n")}}, "v:1: the line begins with a byte order mark"},
		"a second mark":      {envFlags{files: []string{writeFile(t, "v", "A=1\n\ufeffB="+secret+"\n")}}, "v:2: the line begins with a byte order mark"},
		"UTF-16":             {envFlags{files: []string{writeFile(t, "v", "\xff\xfeA\x00=\x00"+secret)}}, "v:1: the line begins with a byte order mark"},
		"a mark in --env":    {envFlags{entries: []string{"\ufeffA=" + secret}}, "number 1 begins with a byte order mark"},
		"quotes":             {envFlags{files: []string{writeFile(t, "v", "\"A\"="+secret+"\n")}}, "v:1: the name is in quotes"},
		"a quoted line":      {envFlags{files: []string{writeFile(t, "v", "'A="+secret+"'\n")}}, "v:1: the name is in quotes"},
		"quotes in --env":    {envFlags{entries: []string{`"A"=` + secret}}, "the name of number 1 is in quotes"},
		"a huge file":        {envFlags{files: []string{writeFile(t, "v", strings.Repeat("#\n", maxEnvFile))}}, "larger than 2 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.flags.readVariables(t.Context(), caller("/"))
			require.ErrorContains(t, err, tc.says)
			assert.Nil(t, got)
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
			assert.NotEmpty(t, fault.HintOf(err))
			assert.NotContains(t, err.Error()+fault.HintOf(err), secret)
		})
	}
}

func TestHideBlotsOutValues(t *testing.T) {
	t.Parallel()
	p := output.New(process.Process{}, output.Options{Secrets: []string{"kept-secret"}})
	hideValues(p, []string{"TOKEN=hunter2-hunter2", "DEBUG=true", "EMPTY=", "AT=1234567", "LONG=12345678"})
	assert.Equal(t, []string{"kept-secret", "hunter2-hunter2", "12345678"}, p.Secrets)
}

// FuzzEnvFile: whatever a file holds, there are names once each, or a mistake
// that shows nothing of the file.
func FuzzEnvFile(f *testing.F) {
	for _, seed := range []string{"A=1\n", "#\n\nA=1\r\nB", "=\n", "A\x00=1", "A=\x00", "\ufeffA=1", "A=1\nA=2", "\r\n\r"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v := variables{at: map[string]int{}}
		if err := v.parseLines("file", text); err != nil {
			assert.Regexp(t, `^file:\d+: (this line is not NAME=VALUE|the line begins with a byte order mark|the name is in quotes)$`, err.Error())
			return
		}
		seen := map[string]bool{}
		for _, entry := range v.list {
			key, value, ok := strings.Cut(entry, "=")
			assert.True(t, ok && usableName(key) && !seen[key], "%q", entry)
			assert.NotContains(t, value, "\n")
			assert.NotContains(t, value, "\x00")
			seen[key] = true
		}
	})
}
