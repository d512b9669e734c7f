package wiretest

import (
	"io"
	"testing"
)

// LoadFrom is LoadContract with a test's descriptions.
func LoadFrom(tb testing.TB, folder, exemptions string, specs ...Spec) *Contract {
	tb.Helper()
	return loadContract(tb, folder, exemptions, specs...)
}

// ParseExemptions reads a list of exemptions.
func ParseExemptions(r io.Reader) (map[string]string, error) { return parseExemptions(r) }

// Matched compares a path with a template.
func Matched(template, path string) (params map[string]string, literal int, ok bool) {
	return matchPath(template, path)
}

// Covers compares a route with a template.
func Covers(template, route string) bool { return coversRoute(template, route) }

// Tidy exports isCleanPath.
func Tidy(path string) bool { return isCleanPath(path) }
