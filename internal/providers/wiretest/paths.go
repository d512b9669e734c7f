package wiretest

import (
	"net/url"
	"strings"
)

// covers says that every literal part of a route is literal in a template too.
func covers(template, route string) bool {
	parts := strings.Split(template, "/")
	for i, part := range strings.Split(route, "/") {
		if i >= len(parts) || (!variable(part) && parts[i] != part) {
			return strings.HasSuffix(part, "...}")
		}
	}
	return true
}

// variable knows a part that stands for any text: {id}.
func variable(part string) bool { return strings.HasPrefix(part, "{") && strings.HasSuffix(part, "}") }

// matched says whether an escaped path is one of a template's, and how many of
// its parts are literal.
func matched(template, path string) (params map[string]string, literal int, ok bool) {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, 0, false
	}
	params = map[string]string{}
	for i, part := range want {
		text, err := url.PathUnescape(got[i])
		switch {
		case err != nil:
			return nil, 0, false
		case variable(part) && text != "":
			params[part[1:len(part)-1]] = text
		case part == text:
			literal++
		default:
			return nil, 0, false
		}
	}
	return params, literal, true
}
