package commands

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/config"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// newLabels is a help topic: `sbx help labels`.
func newLabels(d *Deps) *cobra.Command {
	return &cobra.Command{
		Use:   "labels",
		Short: "Which labels sbx reads, and where each provider keeps them",
		Long:  labelsHelp(d.Types),
	}
}

// labelsHelp is made from the tables that read labels.
func labelsHelp(types []providers.Type) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Labels that sbx reads, whoever wrote them\n\n"+
		"  %-15s %s\n  %-15s %s\n",
		sandbox.LabelOwner, "whose it is. A profile that its environment variable alone has",
		"", "switched on lets cleanup and reconcile end only what has this label")
	for _, m := range config.MetadataRows() {
		if m.Own != sandbox.LabelOwner {
			fmt.Fprintf(&b, "  %-15s %s; also %s\n", m.Own, m.Help, m.Default)
		}
	}
	fmt.Fprintf(&b, "  %-15s true, or a time (RFC 3339) until which nothing may end it\n\n", sandbox.LabelKeep)
	b.WriteString("`create` and `run` write the first three. Which other keys name task, agent type and\n" +
		"owner is set under `metadata` in the configuration; an owner that is read so is shown\n" +
		"and makes nothing yours. `sbx config own` writes down what cleanup may end.\n\n" +
		"Where they are written without sbx\n\n")
	for _, t := range types {
		if t.LabelsIn != "" {
			fmt.Fprintf(&b, "  %-10s %s\n", t.Name, strings.ReplaceAll(t.LabelsIn, "`", ""))
		}
	}
	return b.String()
}
