package output

// nearest finds the known word that word was probably meant to be: one slip away, or
// two in a word of five letters and more; "" when there is none.
func nearest(word string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if d := slips(word, k); d < distance && (d < 2 || len(k) >= 5) && d < len(k) {
			best, distance = k, d
		}
	}
	return best
}

// slips counts the insertions, deletions, replacements and swaps of neighbouring bytes that
// lead from a to b. Words longer than 64 bytes count as far apart.
func slips(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(replaced, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
