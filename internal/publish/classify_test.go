package publish

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
)

func TestFates(t *testing.T) {
	t.Parallel()
	updates := []refUpdate{{"refs/heads/b", "", "1"}, {"refs/sbx/fence/t", "", "2"}}
	line := func(flag, ref, summary string) string { return flag + "\tx:" + ref + "\t" + summary + "\n" }
	branch, fence := updates[0].ref, updates[1].ref
	for name, tc := range map[string]struct {
		out, errors string
		code        int
		cut         bool
		want        pushResult
	}{
		"both new":              {line("*", branch, "[new branch]") + line("*", fence, "[new reference]"), "", 0, false, pushAccepted},
		"moved and there":       {line(" ", branch, "1..2") + line("=", fence, "[up to date]"), "", 0, false, pushAccepted},
		"one line is missing":   {line("*", branch, "[new branch]"), "", 0, false, pushUnknown},
		"said yes and fell":     {line("*", branch, "[new branch]") + line("*", fence, "[new reference]"), "", 1, false, pushUnknown},
		"said yes and was cut":  {line("*", branch, "[new branch]") + line("*", fence, "[new reference]"), "", -1, true, pushUnknown},
		"lease":                 {line("!", branch, "[rejected] (atomic push failed)") + line("!", fence, "[rejected] (stale info)"), "", 1, false, pushRejected},
		"hook":                  {line("!", branch, "[remote rejected] (hook declined)") + line("!", fence, "[remote rejected] (atomic push failure)"), "", 1, false, pushRejected},
		"no report":             {line("!", branch, "[remote failure] (remote failed to report status)") + line("!", fence, "[remote failure] (remote failed to report status)"), "", 1, false, pushUnknown},
		"half a report":         {line("!", branch, "[remote rejected] (x)") + line("!", fence, "[remote failure] (remote failed to report status)"), "", 1, false, pushUnknown},
		"hidden":                {line("*", branch, "[new branch]") + line("!", fence, "[remote rejected] (deny updating a hidden ref)"), "", 1, false, pushTorn},
		"nothing":               {"", "", 128, false, pushUnknown},
		"hung up":               {"", "fatal: the remote end hung up unexpectedly\n", 128, false, pushUnknown},
		"no right":              {"", "fatal: Authentication failed for 'https://h/r'\n", 128, false, pushNotSent},
		"no right, but cut":     {"", "fatal: Authentication failed for 'https://h/r'\n", -1, true, pushUnknown},
		"no atomic":             {"", "fatal: the receiving end does not support --atomic push\n", 128, false, pushNotSent},
		"a hook speaks of auth": {"", "remote: Permission denied\nfatal: the remote end hung up unexpectedly\n", 128, false, pushUnknown},
		"another ref alike":     {line("*", "refs/x/refs/heads/b", "[new]") + line("*", fence, "[new reference]"), "", 0, false, pushUnknown},
	} {
		got := parsePushResult(gitOutput{out: tc.out, errors: tc.errors, code: tc.code, cutShort: tc.cut}, updates)
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
		kind, hint := classifyMessage(words)
		assert.Equal(t, want, kind, words)
		assert.NotEmpty(t, hint)
	}
}

func TestWhatIsQuotedOfGit(t *testing.T) {
	t.Parallel()
	s := &scratch{credentials: credentials{user: "t0kenlong", password: "p@ss"}}
	for text, want := range map[string]string{
		"": "git printed nothing",
		"error: x\nfatal: the remote end hung up unexpectedly\n":                                    "error: x",
		"remote: \x1b[31mno\x1b[0m\nremote:\nremote: error: GH006\nerror: failed to push some refs": "[31mno [0m; error: GH006",
		"fatal: for https://u:s3cret@h/r: p@ss p%40ss t0kenlong":                                    "fatal: for https://h/r: *** *** ***",
		"ssh: connect to host h port 22: refused\nfatal: Could not read from remote\n":              "ssh: connect to host h port 22: refused",
	} {
		assert.Equal(t, want, s.describeOutput(gitOutput{errors: text}))
	}
	assert.LessOrEqual(t, len(s.describeOutput(gitOutput{errors: "fatal: " + strings.Repeat("x", 1000)})), 300)
}

func TestBusyRemotes(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]bool{
		"[remote rejected] (failed to update ref)": true, "cannot lock ref 'refs/sbx/fence/t': reference already exists": true,
		"[remote rejected] (hook declined)": false, "[remote rejected] (push declined: blocked by a rule)": false, "[remote rejected] (deny updating a hidden ref)": false, "": false,
	} {
		assert.Equal(t, want, isBusy(words), words)
	}
}
