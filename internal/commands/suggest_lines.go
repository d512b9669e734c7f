package commands

import (
	"regexp"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"
)

// imageLine are the words behind a verb that were typed as those of `docker run`: its flags, an image and a command;
// nil where they were not.
func imageLine(cmd *cobra.Command, typed []typedWord) []string {
	flags := allFlags(cmd)
	at := slices.IndexFunc(typed, func(t typedWord) bool { return !t.flag })
	if at < 0 || flags.Lookup("image") == nil || flags.Changed("image") {
		return nil
	}
	var words []string
	asDocker := false
	for _, t := range typed[:at] {
		switch {
		case t.known:
			words = append(words, t.words...)
		case slices.Contains([]string{"--rm", "-it", "-ti", "-i", "-t"}, t.words[0]):
			asDocker = true
		case t.words[0] == "-d" && flags.Lookup("detach") != nil:
			words = append(words, "--detach")
		case t.words[0] != "-d":
			return nil
		}
	}
	if image := typed[at].words[0]; !asDocker && !isImage(image) {
		return nil
	}
	words = append(words, "--image", typed[at].words[0], "--")
	for _, t := range typed[at+1:] {
		words = append(words, t.words...)
	}
	if at+1 == len(typed) {
		words = append(words, "COMMAND")
	}
	return words
}

// isImage says that a word is an image rather than a program: it has a tag or a registry, or is one of the well-known.
func isImage(word string) bool {
	known := []string{"ubuntu", "debian", "alpine", "busybox", "fedora", "centos", "rockylinux", "archlinux", "amazonlinux", "golang", "nginx"}
	return slices.Contains(known, word) ||
		regexp.MustCompile(`^([a-z0-9-]+\.[a-z0-9.-]+(:[0-9]+)?/)?[a-z0-9][a-z0-9._/-]*:[A-Za-z0-9._-]+$|^[a-z0-9-]+\.[a-z0-9.-]+/[a-z0-9._/-]+$`).MatchString(word)
}

// shellLine opens a shell in a sandbox, or runs what stood behind its name.
func shellLine(root *cobra.Command, ref string, rest []string) string {
	var command []string
	if more := behind(rest, ref); len(more) > 0 && more[0] == "--" {
		more = more[1:]
		command = more
	} else if len(more) > 0 {
		command = more
	}
	if ref == "" {
		ref = "REF"
	}
	if len(command) == 0 {
		return shellescape.QuoteCommand([]string{root.Name(), "shell", ref})
	}
	return shellescape.QuoteCommand(append([]string{root.Name(), "exec", "-it", ref, "--"}, command...))
}

// copyLine copies a file by the streams of exec: cat on one side, a redirection on the other.
func copyLine(root *cobra.Command, rest []string) string {
	paths := slices.DeleteFunc(slices.Clone(rest), func(w string) bool { return strings.HasPrefix(w, "-") })
	from, to := "REF:PATH", "FILE"
	if len(paths) > 0 {
		from = paths[0]
	}
	if len(paths) > 1 {
		to = paths[1]
	}
	if ref, path, inside := strings.Cut(to, ":"); inside {
		line := []string{root.Name(), "exec", "-i", ref, "--", "sh", "-c", "cat > " + shellescape.Quote(path)}
		return shellescape.QuoteCommand(line) + " < " + shellescape.Quote(from)
	}
	if to == "." || strings.HasSuffix(to, "/") {
		to += from[strings.LastIndexAny(from, "/:"):]
	}
	ref, path, inside := strings.Cut(from, ":")
	switch {
	case !inside:
		return root.Name() + " exec REF -- cat PATH > FILE"
	case len(paths) > 1 && slices.ContainsFunc(rest, func(w string) bool { return slices.Contains([]string{"-r", "-R", "-a", "--recursive"}, w) }):
		return shellescape.QuoteCommand([]string{
			root.Name(), "exec", ref, "--", "tar", "-C", path, "-c", ".",
		}) + " | " + shellescape.QuoteCommand([]string{"tar", "-x", "-C", paths[1]})
	}
	return shellescape.QuoteCommand([]string{root.Name(), "exec", ref, "--", "cat", path}) + " > " + shellescape.Quote(to)
}
