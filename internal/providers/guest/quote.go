package guest

import "strings"

// Quote writes words as one line of a POSIX shell, so that the shell gives back
// exactly these words.
func Quote(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}
