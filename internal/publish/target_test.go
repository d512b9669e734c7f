package publish

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestParseTarget(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Target{
		"origin=fix":                                  {"origin", "fix"},
		"origin=refs/heads/agent/fix-1":               {"origin", "agent/fix-1"},
		"https://u:p=q==@host/o/r.git=b":              {"https://u:p=q==@host/o/r.git", "b"},
		"git@github.com:o/r.git=agent/1":              {"git@github.com:o/r.git", "agent/1"},
		"ssh://git@host:22/o/r=b":                     {"ssh://git@host:22/o/r", "b"},
		"./r.git=b":                                   {"./r.git", "b"},
		"/srv/r.git=b":                                {"/srv/r.git", "b"},
		`C:\repos\r=b`:                                {`C:\repos\r`, "b"},
		"file:///srv/r.git=größe":                     {"file:///srv/r.git", "größe"},
		"https://[::1]:8443/r=" + long('b', maxRef):   {"https://[::1]:8443/r", long('b', maxRef)},
		"https://" + "host" + "/r=sbx/fence/harmless": {"https://host/r", "sbx/fence/harmless"},
	} {
		got, err := ParseTarget(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got)
	}
}

func long(r rune, n int) string { return strings.Repeat(string(r), n) }

func TestParseTargetRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "=", "origin", "origin=", "=b", "-x=b", "--upload-pack=evil=b", "origin=-b", "origin=--delete", "origin=refs/sbx/fence/t", "origin=refs/tags/v1", "origin=refs/pull/1/head",
		"origin=HEAD", "origin=@", "origin=a..b", "origin=a b", "origin=a~1", "origin=a:b", "origin=a.lock", "origin=.a", "origin=a/.b", "origin=a//b", "origin=/a", "origin=a/",
		"origin=a.", "origin=a@{1}", "origin=a*", "origin=a\x00b", "origin=a\nb", "origin=a\xff", "origin=" + long('b', maxRef+1), "origin=refs/heads/refs/heads/a",
		"ext::sh -c id=b", "fd::3=b", "codecommit::us://r=b", "ftp://h/r=b", "javascript://h/r=b", "https:///r=b", "https://-h/r=b", "ssh://-oProxyCommand=x/r=b", "ssh://-x@h/r=b",
		"ssh://u:p@h/r=b", "git://u:p@h/r=b", "-oProxyCommand=x:r=b", "git@-h:r=b", "ori gin=b", "a\x1bb=c", "https://%zz/r=b",
	} {
		got, err := ParseTarget(text)
		require.Error(t, err, "%q is %#v", text, got)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), text)
		assert.NotEmpty(t, fault.HintOf(err), text)
	}
}

// Every branch name that sbx accepts is valid for git.
func TestBranchRulesAreGits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{
		"a", "a/b", "a.b", "a-b", "-a", "a..b", ".a", "a/.b", "a.lock", "a.lock/b", "a b", "a~", "a^", "a:", "a?", "a*", "a[", `a\`, "a//b", "/a", "a/", "a.", "@", "a@{b", "{a}", "@a", "+a", "a=b",
		"größe", "a\x7f", "a'b", `a"b`, "a;b", "$(a)", "a|b", "HEAD", "a/HEAD", "!a", "%a", "#a",
	} {
		_, err := w.try(t.TempDir(), "check-ref-format", "--branch", name)
		mine := checkBranch(name)
		if name == "@" || name == "HEAD" {
			err = mine // older versions of git accept these
		}
		assert.Equal(t, err == nil, mine == nil, "%q: git says %v, sbx says %v", name, err, mine)
	}
}

func TestShownTargets(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"https://bot:t0ken@host/r":      "https://host/r=b",
		"https://t0ken@host:8443/r?x=1": "https://host:8443/r?x=1=b",
		"https://a@b:t0ken@host/r":      "https://host/r=b",
		"ssh://git@host/r":              "ssh://git@host/r=b",
		"ssh://git:t0ken@host/r":        "ssh://git@host/r=b",
		"git@host:r":                    "git@host:r=b",
		"/srv/r":                        "/srv/r=b",
		"https://bot:t0ken%zz@host/r":   "https://host/r=b",
		"https://bot:t0ken'x@host/r":    "https://host/r=b",
		"HTTP://bot:'t0ken'@host/r":     "http://host/r=b",
		"https://bot:t0ken'%zz@host/r":  "https://host/r=b",
		"HTTPS://Host/a b/@c?x=%2f#y":   "HTTPS://Host/a b/@c?x=%2f#y=b",
		"https://host/%7eo/it's@2.git":  "https://host/%7eo/it's@2.git=b",
	} {
		target := Target{Remote: remote, Branch: "b"}
		assert.Equal(t, want, target.String())
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			assert.NotContains(t, fmt.Sprintf(verb, target)+fmt.Sprintf(verb, &target)+fmt.Sprintf(verb, Push{Target: target}), "t0ken", verb)
		}
		assert.Equal(t, strings.Contains(remote, "t0ken"), target.HasSecret(), remote)
	}
}

func TestAddressesInFreeText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"unable to access 'https://u:p@host/': 403":                "unable to access 'https://host/': 403",
		"unable to access 'https://u:it's@host/': 403":             "unable to access 'https://host/': 403",
		"from 'https://host' and 'http://t@host', ask ann@host":    "from 'https://host' and 'http://host', ask ann@host",
		`of "https://host":"ann@host"`:                             `of "https://host":"ann@host"`,
		"see https://host/login, or write to 'ann@host' to get in": "see https://host/login, or write to 'ann@host' to get in",
	} {
		assert.Equal(t, want, withoutUserinfo(text))
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.inside, "remote", "add", "near", "../remote.git")
	w.run(w.inside, "remote", "add", "bare", "sub")
	w.run(w.inside, "remote", "add", "two", "https://host/read.git")
	w.run(w.inside, "remote", "set-url", "--push", "two", "ssh://git@host/write.git")
	w.run(w.inside, "remote", "add", "evil", "ext::sh -c id")
	for remote, want := range map[string]string{
		"origin": w.remote, "near": w.remote, "two": "ssh://git@host/write.git", "bare": filepath.Join(w.inside, "sub"),
		"./x": filepath.Join(w.inside, "x"), "../remote.git": w.remote, "https://host/r": "https://host/r", "git@h:r": "git@h:r",
	} {
		got, err := w.git.Resolve(t.Context(), Target{remote, "b"}, w.inside)
		require.NoError(t, err, remote)
		assert.Equal(t, Target{want, "b"}, got)
	}
	for _, remote := range []string{"nobody", "evil", "-v", ""} {
		_, err := w.git.Resolve(t.Context(), Target{remote, "b"}, w.inside)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), "%s: %v", remote, err)
	}
	_, err := w.git.Resolve(t.Context(), Target{"origin", "b"}, t.TempDir())
	assert.Equal(t, fault.KindUsage, fault.KindOf(err), "no repository here: %v", err)
	_, err = w.git.Base(t.Context(), Target{"origin", "b"})
	assert.Equal(t, fault.KindUsage, fault.KindOf(err), "not resolved: %v", err)
}

func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{"origin=b", "https://u:p@h/r=b", "-x=-b", "ext::sh -c id=b", "git@h:r=b", "=", "ssh://a@@h/r=b", "https://u:s3cret@[h/r=b", "a://\n@=b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := ParseTarget(text)
		if err != nil {
			if fault.KindOf(err) != fault.KindUsage {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if strings.HasPrefix(target.Remote, "-") || strings.HasPrefix(target.Branch, "-") || target.Branch == "" || strings.HasPrefix(target.Remote, "ext::") {
			t.Fatalf("%q gives %#v", text, target)
		}
		remote, given := splitCredentials(target.Remote)
		if given.password != "" && len(given.password) > 8 && (strings.Contains(remote, given.password) || strings.Contains(target.String(), given.password)) && strings.Count(text, given.password) == 1 {
			t.Fatalf("%q shows its password: %s", text, target)
		}
		again, err := ParseTarget(target.Remote + "=" + target.Branch)
		if err != nil || again != target {
			t.Fatalf("%q: %#v is not read again: %v", text, target, err)
		}
	})
}
