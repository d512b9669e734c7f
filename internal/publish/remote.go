package publish

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"sbx/internal/fault"
)

// place is how a REMOTE is written.
type place int

const (
	named   place = iota // the name of a remote in some repository
	pathed               // a folder of this host
	scpLike              // user@host:path
	address              // scheme://...
)

func placeOf(remote string) place {
	colon, slash := strings.IndexByte(remote, ':'), strings.IndexAny(remote, `/\`)
	switch {
	case strings.Contains(remote, "://"):
		return address
	case colon == 1 && slash == 2:
		return pathed // C:\repo
	case colon >= 0 && (slash < 0 || colon < slash):
		return scpLike
	case slash >= 0 || strings.HasPrefix(remote, "."):
		return pathed
	}
	return named
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
		return refuse("begins like an option")
	case strings.ContainsFunc(remote, unicode.IsControl):
		return refuse("holds a control character")
	case regexp.MustCompile(`^[A-Za-z0-9+.-]*::`).MatchString(remote):
		return refuse("names a transport helper, which could run any program")
	}
	switch placeOf(remote) {
	case address:
		return checkAddress(remote, refuse)
	case scpLike:
		if host, _, _ := strings.Cut(remote, ":"); strings.HasPrefix(afterUser(host), "-") {
			return refuse("has a host that begins like an option")
		}
	case named:
		if badRef(remote) != "" {
			return refuse("is no name git would take")
		}
	case pathed:
	}
	return nil
}

// checkAddress never quotes the URL, nor the error of its parser, because both
// may hold a password.
func checkAddress(remote string, refuse func(string) error) error {
	u, err := url.Parse(remote)
	if err != nil {
		return refuse("is no URL; write special characters of a password as %XX")
	}
	_, password := u.User.Password()
	switch u.Scheme {
	case "https", "http":
	case "ssh", "git":
		if password {
			return refuse("carries a password, which " + u.Scheme + " does not take")
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

func afterUser(host string) string { return host[strings.LastIndexByte(host, '@')+1:] }

// shown is a remote without what may be secret: the login of an ssh URL stays,
// because it is a name; that of an http URL may be a token. An address without
// either is shown as it was written.
func shown(remote string) string {
	if placeOf(remote) != address {
		return remote
	}
	u, err := url.Parse(remote)
	switch {
	case err != nil: // no remote that sbx takes, and a password may be what is wrong with it
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

// withoutUserinfo takes out of free text, as git and hosts write it, what stands
// before the @ of an address. A password may hold a quote, so only white space, a
// slash and a double quote end it.
func withoutUserinfo(text string) string {
	return regexp.MustCompile(`(://)[^/\s"]*@`).ReplaceAllString(text, "$1")
}

// absolute makes a folder independent of where git runs.
func absolute(remote, dir string) string {
	if placeOf(remote) != pathed || filepath.IsAbs(remote) {
		return remote
	}
	return filepath.Join(dir, remote)
}
