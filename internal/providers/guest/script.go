package guest

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"al.essio.dev/pkg/shellescape"
)

// maxPart is how many bytes of a script one argument holds: Linux takes 128 KiB, with its end.
const maxPart = 120 << 10

// ScriptName is $0 of the scripts that sbx runs in a sandbox for itself: it distinguishes them from the
// commands of others.
const ScriptName = "sbx-probe"

// Argv is the command line with which /bin/sh runs a script, with its $0. No other shell reads the
// script: the `sh` of the image's PATH may be any. A script that JSON cannot carry, since it is not
// UTF-8, or that is too long for one argument, is passed in parts for printf %b.
func Argv(name, text string) []string {
	if utf8.ValidString(text) && len(text) <= maxPart {
		return []string{"/bin/sh", "-c", text, name}
	}
	return append([]string{"/bin/sh", "-c", `eval "$(printf %b "$@")"`, name}, escapedParts(text)...)
}

// escapedParts is a text in the notation of printf %b, with ASCII alone, in parts of at most maxPart.
func escapedParts(text string) []string {
	var parts []string
	var part strings.Builder
	for _, b := range []byte(text) {
		if part.Len() > maxPart-len(`\0377`) {
			parts = append(parts, part.String())
			part.Reset()
		}
		if b == '\\' || b >= utf8.RuneSelf {
			fmt.Fprintf(&part, `\0%03o`, b)
		} else {
			part.WriteByte(b)
		}
	}
	return append(parts, part.String())
}

// Line is Argv for an API that hands commands to a shell of its choice. It is one simple command with
// every word in single quotes, which all shells read alike: zsh splits no variable into words, fails
// where a pattern matches nothing, and expands =ls.
func Line(name, text string) string {
	words := Argv(name, text)
	for i, word := range words {
		words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return "exec " + strings.Join(words, " ")
}

// TextArgs is a command line that JSON can carry and that runs the program with these arguments,
// byte by byte: args itself where they are UTF-8, and else a script of /bin/sh.
func TextArgs(args []string) []string {
	for _, a := range args {
		if !utf8.ValidString(a) {
			return Argv("sbx", "exec "+shellescape.QuoteCommand(args))
		}
	}
	return args
}
