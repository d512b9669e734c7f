package commands

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/fleet"
	"sbx/internal/ops/launch"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// completeFlag offers fixed words for a flag.
func completeFlag(cmd *cobra.Command, flag string, words func() []string) {
	completeFlagFunc(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	})
}

// wordsOf are the words of a closed list.
func wordsOf[T ~string](list []T) []string {
	words := make([]string, len(list))
	for i, word := range list {
		words[i] = string(word)
	}
	return words
}

// completeFlagFunc completes the value of a flag. A flag that is not there is a bug that the
// test of the tree finds.
func completeFlagFunc(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(errors.Join(errors.New(cmd.Name()+": completion of --"+flag), err))
	}
}

// isCompleting reports whether a shell asks for completions and no verb will run.
func (d *Deps) isCompleting() bool {
	args := d.Process.Args
	return len(args) > 1 && (args[1] == cobra.ShellCompRequestCmd || args[1] == cobra.ShellCompNoDescRequestCmd)
}

// prepareCompletion makes the flags of a command and of those below it fit for a shell, which
// prints their descriptions as they are and offers files for whatever has no words.
func prepareCompletion(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		placeholder, usage := pflag.UnquoteUsage(f)
		if _, has := cmd.GetFlagCompletionFunc(f.Name); !has && f.NoOptDefVal == "" && placeholder != "FILE" && placeholder != "FOLDER" {
			completeFlag(cmd, f.Name, func() []string { return nil })
		}
		f.Usage = usage
	})
	for _, sub := range cmd.Commands() {
		prepareCompletion(sub)
	}
}

const (
	completionLimit = time.Second // what a TAB may cost at all
	// providerShare is what a provider has of it: of one that is later, the last listing is
	// offered.
	providerShare = 60 * time.Millisecond
)

// offer chooses the sandboxes that a verb can act on.
type offer func(cmd *cobra.Command, s sandbox.Sandbox) bool

func offerAll(*cobra.Command, sandbox.Sandbox) bool { return true }

func offerRunning(_ *cobra.Command, s sandbox.Sandbox) bool {
	return s.State == sandbox.StateRunning || s.State == sandbox.StateUnknown
}

func offerLiving(_ *cobra.Command, s sandbox.Sandbox) bool { return !s.State.Ended() }

// offerTerminable leaves out what has ended, unless --delete destroys what is kept of it.
func offerTerminable(cmd *cobra.Command, s sandbox.Sandbox) bool {
	return !s.State.Ended() || cmd.Flags().Changed("delete")
}

// offerWaitable is what can still reach the state that is waited for.
func offerWaitable(cmd *cobra.Command, s sandbox.Sandbox) bool {
	if cmd.Flags().Lookup("for").Value.String() == string(fleet.GoalRunning) {
		return !s.State.Ended() && s.State != sandbox.StateRunning
	}
	return !s.State.Ended()
}

// completeRefs offers the references of sandboxes that a verb can act on, with name and state
// as the shell's description; of a word that begins a name, the name.
func (d *Deps) completeRefs(many bool, can offer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if !many && len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return d.refWords(cmd, args, word, can)
	}
}

// refWords are the completions of one word; args are given already.
func (d *Deps) refWords(cmd *cobra.Command, args []string, word string, can offer) ([]string, cobra.ShellCompDirective) {
	ctx, stop := context.WithTimeout(cmd.Context(), completionLimit)
	defer stop()
	known, err := look.ListKnown(ctx, d.Env, providerShare)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	taken, bearers := map[string]bool{}, map[string]int{}
	for _, arg := range args {
		taken[arg] = true
	}
	for _, s := range known {
		bearers[s.Name]++
	}
	var words []string
	add := func(text, about string) { // the shell prints both as they are
		if strings.HasPrefix(text, word) {
			words = append(words, cobra.CompletionWithDesc(text, output.Escape(strings.TrimSpace(about))))
		}
	}
	for _, s := range known {
		ref := s.Ref().String()
		if taken[ref] || taken[s.Name] || taken[s.ID] || !can(cmd, s) {
			continue
		}
		add(ref, s.Name+" "+string(s.State))
		if word != "" && bearers[s.Name] == 1 && plainName().MatchString(s.Name) {
			add(s.Name, ref+" "+string(s.State))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// plainName is a name that no shell takes apart, so that it can be completed.
func plainName() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`) }

// completeTasks offers the newest tasks that a verb can act on, of those whose ids begin with
// the word.
func (d *Deps) completeTasks(many bool, can func(task.Task) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if !many && len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, stop := context.WithTimeout(cmd.Context(), completionLimit)
		defer stop()
		var words []string
		for _, t := range launch.TasksWithPrefix(ctx, d.Env, word, maxTasksRead) {
			if len(words) < maxCompletions && can(t) && !slices.Contains(args, t.ID) {
				about := output.Escape(string(t.State) + " " + strings.Join(t.Spec.Command, " ")) // the shell prints it as it is
				words = append(words, cobra.CompletionWithDesc(t.ID, about))
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

func offerAnyTask(task.Task) bool { return true }

// offerStoppable is a task that is not over, or that has kept its sandbox.
func offerStoppable(t task.Task) bool { return !t.State.Final() || t.Kept != nil }

func offerKept(t task.Task) bool { return t.Kept != nil }

const (
	maxCompletions = 50  // how many tasks a TAB offers
	maxTasksRead   = 500 // and how many it looks at
)
