package fake

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestCompile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args  []string
		known bool
		ends  bool
		code  int
		runs  time.Duration
		says  string
	}{
		"nothing":         {nil, false, false, 0, 0, ""},
		"unknown":         {[]string{"python", "agent.py"}, false, false, 0, 0, ""},
		"echo":            {[]string{"echo", "a", "b"}, true, true, 0, 0, "stdout:a b"},
		"false":           {[]string{"false"}, true, true, 1, 0, ""},
		"sleep":           {[]string{"sleep", "1.5"}, true, true, 0, 1500 * time.Millisecond, ""},
		"sleep for ever":  {[]string{"sleep", "infinity"}, true, false, 0, 0, ""},
		"sleep negative":  {[]string{"sleep", "-1"}, true, false, 0, 0, ""},
		"script":          {[]string{"sh", "-c", `echo "a"; sleep 2; echo b >&2; exit 4; echo never`}, true, true, 4, 2 * time.Second, "stdout:a stderr:b"},
		"last code":       {[]string{"sh", "-c", "false; true"}, true, true, 0, 0, ""},
		"not found":       {[]string{"sh", "-c", "nonsense"}, true, true, 127, 0, "stderr:sh: nonsense: not found"},
		"environment":     {[]string{"sh", "-c", "echo $WHO $NOBODY"}, true, true, 0, 0, "stdout:me"},
		"waits for ever":  {[]string{"sh", "-c", "echo a; sleep infinity; echo never"}, true, false, 0, 0, "stdout:a"},
		"an empty script": {[]string{"sh", "-c", " ; "}, true, true, 0, 0, ""},
		"no script":       {[]string{"sh"}, false, false, 0, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := parseCommand(tc.args, []string{"WHO=me"})
			runs, ends := p.runTime()
			assert.Equal(t, tc.known, p.known)
			assert.Equal(t, tc.ends, ends)
			assert.Equal(t, tc.runs, runs)
			assert.Equal(t, tc.code, p.code)
			var says []string
			for _, s := range p.steps {
				if s.stream != "" {
					says = append(says, s.stream+":"+s.text)
				}
			}
			assert.Equal(t, tc.says, strings.Join(says, " "))
		})
	}
}

func FuzzCompile(f *testing.F) {
	f.Add("echo a; sleep 1; exit 3")
	f.Add("sleep 99999999999999999999; echo ${; >&2")
	f.Add("sleep NaN; sleep -0; exit x")
	f.Fuzz(func(t *testing.T, text string) {
		p := parseCommand([]string{"sh", "-c", text}, []string{"A=b", "="})
		assert.True(t, p.known)
		for _, s := range p.steps {
			assert.GreaterOrEqual(t, s.wait, time.Duration(0), "time does not run backwards")
			assert.NotContains(t, s.text, "\n", "a line is one line")
		}
	})
}
