package publish

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
)

func TestFates(t *testing.T) {
	t.Parallel()
	updates := []update{{"refs/heads/b", "", "1"}, {"refs/sbx/fence/t", "", "2"}}
	line := func(flag, ref, summary string) string { return flag + "\tx:" + ref + "\t" + summary + "\n" }
	branch, fence := updates[0].ref, updates[1].ref
	for name, tc := range map[string]struct {
		out, errors string
		code        int
		cut         bool
		want        fate
	}{
		"both new":              {line("*", branch, "[new branch]") + line("*", fence, "[new reference]"), "", 0, false, taken},
		"moved and there":       {line(" ", branch, "1..2") + line("=", fence, "[up to date]"), "", 0, false, taken},
		"one line is missing":   {line("*", branch, "[new branch]"), "", 0, false, open},
		"said yes and fell":     {line("*", branch, "[new branch]") + line("*", fence, "[new reference]"), "", 1, false, open},
		"said yes and was cut":  {line("*", branch, "[new branch]") + line("*", fence, "[new reference]"), "", -1, true, open},
		"lease":                 {line("!", branch, "[rejected] (atomic push failed)") + line("!", fence, "[rejected] (stale info)"), "", 1, false, rejected},
		"hook":                  {line("!", branch, "[remote rejected] (hook declined)") + line("!", fence, "[remote rejected] (atomic push failure)"), "", 1, false, rejected},
		"no report":             {line("!", branch, "[remote failure] (remote failed to report status)") + line("!", fence, "[remote failure] (remote failed to report status)"), "", 1, false, open},
		"half a report":         {line("!", branch, "[remote rejected] (x)") + line("!", fence, "[remote failure] (remote failed to report status)"), "", 1, false, open},
		"hidden":                {line("*", branch, "[new branch]") + line("!", fence, "[remote rejected] (deny updating a hidden ref)"), "", 1, false, torn},
		"nothing":               {"", "", 128, false, open},
		"hung up":               {"", "fatal: the remote end hung up unexpectedly\n", 128, false, open},
		"no right":              {"", "fatal: Authentication failed for 'https://h/r'\n", 128, false, refused},
		"no right, but cut":     {"", "fatal: Authentication failed for 'https://h/r'\n", -1, true, open},
		"no atomic":             {"", "fatal: the receiving end does not support --atomic push\n", 128, false, refused},
		"a hook speaks of auth": {"", "remote: Permission denied\nfatal: the remote end hung up unexpectedly\n", 128, false, open},
		"another ref alike":     {line("*", "refs/x/refs/heads/b", "[new]") + line("*", fence, "[new reference]"), "", 0, false, open},
	} {
		got := fateOf(printed{out: tc.out, errors: tc.errors, code: tc.code, cut: tc.cut}, updates)
		assert.Equal(t, tc.want, got, name)
	}
}

func TestKindsOfGitsWords(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]fault.Kind{
		"fatal: Authentication failed for 'https://h/r/'":                                              fault.KindAuth,
		"fatal: could not read Username for 'https://h': terminal prompts disabled":                    fault.KindAuth,
		"git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.":         fault.KindAuth,
		"fatal: unable to access 'https://h/r/': The requested URL returned error: 403":                fault.KindAuth,
		"ERROR: Permission to o/r.git denied to bot.\nfatal: Could not read from remote repository.":   fault.KindAuth,
		"Host key verification failed.\nfatal: Could not read from remote repository.":                 fault.KindAuth,
		"fatal: repository 'https://h/r/' not found":                                                   fault.KindUsage,
		"ERROR: Repository not found.\nfatal: Could not read from remote repository.":                  fault.KindUsage,
		"fatal: '/x' does not appear to be a git repository":                                           fault.KindUsage,
		"fatal: unable to access 'https://h/r/': Could not resolve host: h":                            fault.KindUnavailable,
		"fatal: unable to access 'https://h/r/': The requested URL returned error: 503":                fault.KindUnavailable,
		"ssh: connect to host h port 22: Connection timed out\nfatal: Could not read from remote repo": fault.KindUnavailable,
		"": fault.KindUnavailable,
	} {
		kind, hint := kindOf(words)
		assert.Equal(t, want, kind, words)
		assert.NotEmpty(t, hint)
	}
}

func TestWhatIsQuotedOfGit(t *testing.T) {
	t.Parallel()
	s := &scratch{given: credentials{user: "t0kenlong", password: "p@ss"}}
	for text, want := range map[string]string{
		"": "git said nothing",
		"error: x\nfatal: the remote end hung up unexpectedly\n":                                    "error: x",
		"remote: \x1b[31mno\x1b[0m\nremote:\nremote: error: GH006\nerror: failed to push some refs": "[31mno [0m; error: GH006",
		"fatal: for https://u:s3cret@h/r: p@ss p%40ss t0kenlong":                                    "fatal: for https://h/r: *** *** ***",
		"ssh: connect to host h port 22: refused\nfatal: Could not read from remote\n":              "ssh: connect to host h port 22: refused",
	} {
		assert.Equal(t, want, s.said(printed{errors: text}))
	}
	assert.LessOrEqual(t, len(s.said(printed{errors: "fatal: " + strings.Repeat("x", 1000)})), 300)
}

func TestBusyRemotes(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]bool{
		"[remote rejected] (failed to update ref)": true, "cannot lock ref 'refs/sbx/fence/t': reference already exists": true,
		"[remote rejected] (hook declined)": false, "[remote rejected] (push declined: blocked by a rule)": false, "[remote rejected] (deny updating a hidden ref)": false, "": false,
	} {
		assert.Equal(t, want, busy(words), words)
	}
}
