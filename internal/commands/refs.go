package commands

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/ops"
	"sbx/internal/output"
)

// completionLimit bounds what a TAB may cost.
const completionLimit = time.Second

// completeRefs offers the references of sandboxes, each with its name and
// state as the shell's description.
func (d *Deps) completeRefs(many bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if !many && len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, stop := context.WithTimeout(cmd.Context(), completionLimit)
		defer stop()
		known, err := ops.ListKnown(ctx, d.Env)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var words []string
		for _, s := range known {
			if !slices.Contains(args, s.Ref().String()) {
				about := output.Escape(strings.TrimSpace(s.Name + " " + string(s.State))) // the shell prints it as it is
				words = append(words, cobra.CompletionWithDesc(s.Ref().String(), about))
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// maxRefs bounds what `-` reads: no fleet is larger, and garbage costs nothing.
const maxRefs = 100_000

// readRefWords gives the references of the command line; `-` reads them from standard input,
// one a line.
func (d *Deps) readRefWords(ctx context.Context, args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		if arg != "-" {
			out = append(out, arg)
			continue
		}
		err := hostfile.Lines(ctx, d.Process.Stdin, func(line string) error {
			word := strings.TrimSpace(line)
			if word == "" || strings.HasPrefix(word, "#") {
				return nil
			}
			if out = append(out, word); len(out) > maxRefs {
				return fault.Usage("there are more than %d", maxRefs)
			}
			return nil
		})
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, err
		case err != nil:
			return nil, fault.Usage("reading references from standard input: %w", err)
		}
	}
	if len(out) == 0 {
		return nil, fault.Usage("no reference was given").WithHint("`%s ls` lists them", d.Process.Name())
	}
	return out, nil
}
