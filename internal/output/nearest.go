package output

import "sbx/internal/fault"

// longestWord is how many bytes of a word are still compared.
const longestWord = 64

// nearest finds the known word that word was probably meant to be: one slip away, or
// two in a word of five letters and more; "" when there is none.
func nearest(word string, known []string) string {
	best, distance := "", 3
	if len(word) > longestWord {
		return best
	}
	for _, k := range known {
		if d := fault.Distance(word, k); d < distance && (d < 2 || len(k) >= 5) && d < len(k) {
			best, distance = k, d
		}
	}
	return best
}
