package publish

import (
	"net/url"
	"strings"
)

// credentials are taken out of an http URL, so that no argument of a process
// and no message of git holds them.
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

// handed is how git gets them: settings and variables of its environment. With a
// password the operator's helpers are set aside, so that none of them stores it;
// a name alone leaves the password to them.
func (c credentials) handed() (config, env []string) {
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

// mask takes them out of text that a remote or git wrote.
func (c credentials) mask(text string) string {
	for _, word := range []string{c.password, c.user} {
		if len(word) < 6 && word != c.password || word == "" {
			continue // the name "git" is no secret, and in every second message
		}
		for _, spelled := range []string{word, url.QueryEscape(word), url.PathEscape(word)} {
			text = strings.ReplaceAll(text, spelled, "***")
		}
	}
	return withoutUserinfo(text)
}
