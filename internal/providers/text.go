package providers

import (
	"strings"
	"unicode/utf8"

	"sbx/internal/fault"
)

// CheckText refuses a command line and an environment that JSON cannot carry: it would replace bytes
// that are no UTF-8, and the program would get other words than those that were written. The error is
// fault.KindUsage and holds no value.
func CheckText(args, env []string) error {
	for i, a := range args {
		if !utf8.ValidString(a) {
			return fault.Usage("word %d of the command is not UTF-8", i+1).WithHint("run it by a script in the sandbox that has the bytes")
		}
	}
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); !utf8.ValidString(kv) {
			return fault.Usage("the environment variable %q is not UTF-8", name).WithHint("pass its bytes encoded, for example with base64")
		}
	}
	return nil
}
