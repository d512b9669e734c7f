package sandbox

import "slices"

// ShortIDs gives each id its shortest beginning that means it alone and that a command takes. One
// that is hardly longer than that stays whole.
func ShortIDs(ids []string) map[string]string {
	const least, whole = 6, 10
	sorted := slices.Sorted(slices.Values(ids))
	common := func(a, b string) int {
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		return n
	}
	short := make(map[string]string, len(ids))
	for i, id := range sorted {
		n := max(least, MinPrefix)
		if i > 0 {
			n = max(n, common(id, sorted[i-1])+1)
		}
		if i+1 < len(sorted) {
			n = max(n, common(id, sorted[i+1])+1)
		}
		if n >= len(id) || len(id) <= whole {
			n = len(id)
		}
		short[id] = id[:n]
	}
	return short
}
