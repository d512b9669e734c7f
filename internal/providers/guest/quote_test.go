//go:build linux

package guest_test

import (
	"os/exec"
	"strings"
	"testing"

	"al.essio.dev/pkg/shellescape"
)

// FuzzQuote checks with a real shell that it prints the quoted word.
func FuzzQuote(f *testing.F) {
	for _, word := range []string{"", "'", `"`, "a b", "$(id)", "`id`", "\n", "\\", "-n", "\xff\xfe", "é", "'\\''", "!", "#", "\x01\x81\x82\x88"} {
		f.Add(word, "x")
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		if strings.Contains(one+two, "\x00") || len(one)+len(two) > 20000 {
			return // no shell word
		}
		out, err := exec.Command("sh", "-c", `printf '%s\0' `+shellescape.QuoteCommand([]string{one, two})).Output()
		if err != nil || string(out) != one+"\x00"+two+"\x00" {
			t.Fatalf("%q %q gives %q, %v", one, two, out, err)
		}
	})
}
