package publish

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
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
		why = "begins with a dash, like an option"
	case branch == "HEAD" || branch == "@":
		why = "is not a branch name"
	case strings.HasPrefix(branch, "refs/"):
		why = "is outside refs/heads/"
	default:
		return nil
	}
	return fault.Usage("publish target: the branch %q %s", branch, why).
		WithHint("a branch is a plain name such as agent/fix-1: the text after the last =")
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
		return "has a space or a control character"
	case strings.ContainsAny(name, "~^:?*[\\"):
		return `has one of ~ ^ : ? * [ \`
	case strings.Contains(name, ".."), strings.Contains(name, "@{"):
		return "has .. or @{"
	case strings.HasSuffix(name, "."):
		return "ends with a dot"
	case slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool {
		return part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock")
	}):
		return "has an empty part, or one that begins with a dot or ends in .lock"
	}
	return ""
}

// addressKind is the form of a REMOTE.
type addressKind int

const (
	remoteName addressKind = iota // the name of a remote in some repository
	folderPath                    // a folder of this host
	scpAddress                    // user@host:path
	urlAddress                    // scheme://...
)

func addressKindOf(remote string) addressKind {
	colon, slash := strings.IndexByte(remote, ':'), strings.IndexAny(remote, `/\`)
	switch {
	case strings.Contains(remote, "://"):
		return urlAddress
	case colon == 1 && slash == 2:
		return folderPath // C:\repo
	case colon >= 0 && (slash < 0 || colon < slash):
		return scpAddress
	case slash >= 0 || strings.HasPrefix(remote, "."):
		return folderPath
	}
	return remoteName
}

func checkRemote(remote string) error {
	refuse := func(why string) error {
		return fault.Usage("publish target: the remote %s", why).
			WithHint("the name of a remote of the repository here, a folder, host:path, or an https, ssh, git or file URL")
	}
	switch {
	case remote == "":
		return refuse("is empty")
	case strings.HasPrefix(remote, "-"):
		return refuse("begins with a dash, like an option")
	case strings.ContainsFunc(remote, unicode.IsControl):
		return refuse("has a control character")
	case regexp.MustCompile(`^[A-Za-z0-9+.-]*::`).MatchString(remote):
		return refuse("names a transport helper, which could run any program")
	}
	switch addressKindOf(remote) {
	case urlAddress:
		return checkAddress(remote, refuse)
	case scpAddress:
		if host, _, _ := strings.Cut(remote, ":"); strings.HasPrefix(host[strings.LastIndexByte(host, '@')+1:], "-") {
			return refuse("has a host that begins like an option")
		}
	case remoteName:
		if refProblem(remote) != "" {
			return refuse("is not a name that git accepts")
		}
	case folderPath:
	}
	return nil
}

// checkAddress never quotes the URL, nor the error of its parser, because both may hold a
// password.
func checkAddress(remote string, refuse func(string) error) error {
	u, err := url.Parse(remote)
	if err != nil {
		return refuse("is not a URL; write special characters of a password as %XX")
	}
	_, password := u.User.Password()
	switch u.Scheme {
	case "https", "http":
	case "ssh", "git":
		if password {
			return refuse("contains a password, which " + u.Scheme + " does not accept")
		}
	case "file":
		return nil
	default:
		return refuse("has a scheme other than https, http, ssh, git and file")
	}
	if u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-") || strings.HasPrefix(u.User.Username(), "-") {
		return refuse("has no host, or one that begins like an option")
	}
	return nil
}

// withoutSecrets is a remote without its secrets: the user of an ssh URL stays, because it
// is a name; that of an http URL may be a token. An address without either is unchanged.
func withoutSecrets(remote string) string {
	if addressKindOf(remote) != urlAddress {
		return remote
	}
	u, err := url.Parse(remote)
	switch {
	case err != nil: // not a remote that sbx accepts; a password may be the reason
		return withoutUserinfo(remote)
	case u.User == nil:
		return remote
	case u.Scheme == "ssh" || u.Scheme == "git":
		u.User = url.User(u.User.Username())
	default:
		u.User = nil
	}
	return u.String()
}

// withoutUserinfo removes from free text of git and hosts what stands before the @ of an
// address. A password may hold a quote, so only white space, a slash and a double quote end
// it.
func withoutUserinfo(text string) string {
	return regexp.MustCompile(`(://)[^/\s"]*@`).ReplaceAllString(text, "$1")
}

// absoluteFolder makes a folder independent of the working directory.
func absoluteFolder(remote, dir string) string {
	if addressKindOf(remote) != folderPath || filepath.IsAbs(remote) {
		return remote
	}
	return filepath.Join(dir, remote)
}

// credentials are taken out of an http URL, so that no argument of a process and no message
// of git holds them.
type credentials struct{ user, password string }

func splitCredentials(remote string) (string, credentials) {
	u, err := url.Parse(remote)
	if err != nil || u.User == nil || u.Scheme != "https" && u.Scheme != "http" {
		return remote, credentials{}
	}
	password, _ := u.User.Password()
	c := credentials{user: u.User.Username(), password: password}
	u.User = nil
	return u.String(), c
}

// gitSettings are the settings and environment variables that give git the credentials.
// With a password the operator's credential helpers are disabled, so that none stores it;
// with a name alone they supply the password.
func (c credentials) gitSettings() (config, env []string) {
	switch {
	case c.password != "":
		helper := `!printf 'username=%s\npassword=%s\n' "$SBX_GIT_USERNAME" "$SBX_GIT_PASSWORD"; :`
		return []string{"credential.helper=", "credential.helper=" + helper},
			[]string{"SBX_GIT_USERNAME=" + c.user, "SBX_GIT_PASSWORD=" + c.password}
	case c.user != "":
		return []string{"credential.username=" + c.user}, nil
	}
	return nil, nil
}

// maskText removes the credentials from text that a remote or git wrote.
func (c credentials) maskText(text string) string {
	for _, word := range []string{c.password, c.user} {
		if len(word) < 6 && word != c.password || word == "" {
			continue // the name "git" is no secret, and occurs in most messages
		}
		for _, spelled := range []string{word, url.QueryEscape(word), url.PathEscape(word)} {
			text = strings.ReplaceAll(text, spelled, "***")
		}
	}
	return withoutUserinfo(text)
}
