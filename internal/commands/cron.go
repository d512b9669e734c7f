package commands

import (
	"slices"

	"github.com/spf13/cobra"

	"sbx/internal/cron"
	"sbx/internal/fault"
)

func newCron(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cron",
		GroupID: groupTool,
		Short:   "Print cron lines that clean unattended, and prove that they ran",
		Long: "Print cron lines that clean unattended, and prove that they ran.\n\n" +
			"Four layers catch what the others miss: what is stuck (every 5 minutes), what is\n" +
			"too old (15), a quota that runs short (5), records that differ from reality\n" +
			"(hourly). sbx installs nothing itself.",
		Example: "sbx cron\nsbx cron print",
		Args:    unknownVerb,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCronPrint(d), newCronCheck(d))
	return cmd
}

func layerWords() []string {
	var words []string
	for _, l := range cron.Layers() {
		words = append(words, string(l))
	}
	return words
}

// layerFlag adds --layer to a verb.
func layerFlag(cmd *cobra.Command, words *[]string, help string) {
	cmd.Flags().StringSliceVar(words, "layer", nil, help)
	complete(cmd, "layer", layerWords)
}

// layers reads --layer; without one all are meant, in their order.
func layers(words []string) ([]cron.Layer, error) {
	var list []cron.Layer
	for _, l := range cron.Layers() {
		if slices.Contains(words, string(l)) {
			list = append(list, l)
		}
	}
	for _, w := range words {
		if cron.Every(cron.Layer(w)) == 0 {
			return nil, fault.Usage("--layer: %q is no layer", w).WithHint("%s", fault.Meant(w, layerWords()))
		}
	}
	if len(words) == 0 {
		return cron.Layers(), nil
	}
	return list, nil
}
