package output

// nearest finds the known word that differs from word by at most two edits and
// by less than half of its letters; "" when there is none.
func nearest(word string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if d := edits(word, k); d < distance && 2*d < len(k)+1 {
			best, distance = k, d
		}
	}
	return best
}

// edits counts the insertions, deletions and replacements of bytes that lead
// from a to b. Words longer than 64 bytes count as far apart.
func edits(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
