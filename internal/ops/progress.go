package ops

import (
	"fmt"
	"strconv"
)

// tellLooks shows how many sandboxes have been looked at.
func tellLooks(p Progress) func(done, all int) {
	return func(done, all int) { p.Update("looked at " + partText(done, all)) }
}

// partText is how much of a whole is done: "3,412 of 10,000".
func partText(done, all int) string { return groupedNumber(done) + " of " + groupedNumber(all) }

// groupedNumber writes a number for people: 10,000.
func groupedNumber(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return groupedNumber(n/1000) + fmt.Sprintf(",%03d", n%1000)
}
