package wirekit

import "sbx/internal/fault"

const (
	// maxPages bounds a listing: at 100 rows a page it is a million rows.
	maxPages = 10_000
	// maxStalePages is how many pages in a row may bring no new row.
	maxStalePages = 20
)

// EachRow reads a listing page by page and gives each row once, by its id, to take until
// take returns false. read returns the page of a token, "" for the first one, and the token
// of the page behind it, "" where it is the last. A listing without an end is an error of
// profile and op, see PageGuard.
func EachRow[R any](profile, op string, read func(token string) (rows []R, next string, err error), id func(R) string, take func(R) bool) error {
	seen := map[string]bool{}
	var guard PageGuard
	for token := ""; ; {
		rows, next, err := read(token)
		if err != nil {
			return err
		}
		before := len(seen)
		for _, row := range rows {
			if seen[id(row)] {
				continue
			}
			seen[id(row)] = true
			if !take(row) {
				return nil
			}
		}
		if next == "" {
			return nil
		}
		if err := guard.Check(next, len(seen)-before); err != nil {
			return fault.Placed(err, profile, op)
		}
		token = next
	}
}

// PageGuard finds a listing that never ends: a token that comes again, and pages without
// new rows, are fault.KindUnavailable, so that the listing counts as incomplete.
type PageGuard struct {
	tokens map[string]bool
	stale  int
}

// Check takes the token of the next page. fresh is how many rows the page before it had
// that no earlier page had.
func (g *PageGuard) Check(token string, fresh int) error {
	if g.tokens == nil {
		g.tokens = map[string]bool{}
	}
	g.stale++
	if fresh > 0 {
		g.stale = 0
	}
	switch {
	case g.tokens[token]:
		return fault.New(fault.KindUnavailable, "the listing loops: a page token came twice")
	case g.stale >= maxStalePages:
		return fault.New(fault.KindUnavailable, "the listing has no end: %d pages brought nothing new", g.stale)
	case len(g.tokens)+1 >= maxPages:
		return fault.New(fault.KindUnavailable, "the listing has no end: %d pages were read", maxPages).WithHint("ask for less: narrow it by state or label")
	}
	g.tokens[token] = true
	return nil
}
