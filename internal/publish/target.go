package publish

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sbx/internal/fault"
)

// Target is where work becomes public: a branch of a remote repository. Remote may carry
// credentials, so it is shown only through String.
type Target struct {
	Remote string // URL, path, or the name of a remote until Resolve
	Branch string // without refs/heads/
}

// String is REMOTE=BRANCH without credentials.
func (t Target) String() string { return withoutSecrets(t.Remote) + "=" + t.Branch }

// GoString keeps credentials out of %#v as well.
func (t Target) GoString() string { return fmt.Sprintf("publish.Target{%q}", t.String()) }

// HasSecret reports that Remote carries credentials, so that it must not be recorded.
func (t Target) HasSecret() bool { return withoutSecrets(t.Remote) != t.Remote }

func (t Target) branchRef() string { return "refs/heads/" + t.Branch }

// ParseTarget parses REMOTE=BRANCH; the last "=" separates them, because a URL may hold
// others. Errors are fault.KindUsage and show no credentials.
func ParseTarget(text string) (Target, error) {
	at := strings.LastIndexByte(text, '=')
	if at <= 0 || at == len(text)-1 {
		return Target{}, fault.Usage("a publish target is REMOTE=BRANCH, and both are needed").
			WithHint("--push origin=agent/fix-1, or --push https://host/owner/repo.git=agent/fix-1")
	}
	t := Target{Remote: text[:at], Branch: strings.TrimPrefix(text[at+1:], "refs/heads/")}
	return t, t.checkTarget()
}

func (t Target) checkTarget() error {
	if err := checkRemote(t.Remote); err != nil {
		return err
	}
	return checkBranch(t.Branch)
}

func checkBranch(branch string) error {
	why := refProblem(branch)
	switch {
	case why != "":
	case strings.HasPrefix(branch, "-"):
		why = "begins like an option"
	case branch == "HEAD" || branch == "@":
		why = "is no name of a branch"
	case strings.HasPrefix(branch, "refs/"):
		why = "lies outside refs/heads/"
	default:
		return nil
	}
	return fault.Usage("publish target: the branch %q %s", branch, why).
		WithHint("a branch is a plain name such as agent/fix-1; what follows the last = is the branch")
}

// maxRef is the longest accepted branch name in bytes; file systems of hosts allow 255 per
// component.
const maxRef = 200

// refProblem explains how a name violates git's rules for refs (git check-ref-format); ""
// when it does not.
func refProblem(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxRef:
		return fmt.Sprintf("is longer than %d bytes", maxRef)
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || unicode.Is(unicode.C, r) }):
		return "holds a space or a control character"
	case strings.ContainsAny(name, "~^:?*[\\"):
		return `holds one of ~ ^ : ? * [ \`
	case strings.Contains(name, ".."), strings.Contains(name, "@{"):
		return "holds .. or @{"
	case strings.HasSuffix(name, "."):
		return "ends with a dot"
	case slices.ContainsFunc(strings.Split(name, "/"), componentProblem):
		return "has an empty part, or one that begins with a dot or ends with .lock"
	}
	return ""
}

func componentProblem(part string) bool {
	return part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock")
}
