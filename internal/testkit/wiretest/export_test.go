package wiretest

import "io"

// ParseExemptions reads a list of exemptions.
func ParseExemptions(r io.Reader) (map[string]string, error) { return parseExemptions(r) }

// Covers compares a route with a template.
func Covers(template, route string) bool { return coversRoute(template, route) }

// Tidy exports isCleanPath.
func Tidy(path string) bool { return isCleanPath(path) }
