package commands

import (
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/output"
)

// layOut gives every command's help its shape: indented examples, and commands under the name
// that this program was started by.
func layOut(cmd *cobra.Command, name string) {
	cmd.Long = withProgramName(cmd.Long, name)
	if cmd.Example != "" {
		lines := strings.Split(cmd.Example, "\n")
		for i, line := range lines {
			lines[i] = "  " + renamedExample(strings.TrimSpace(line), name)
		}
		cmd.Example = strings.Join(lines, "\n")
	}
	for _, sub := range cmd.Commands() {
		layOut(sub, name)
	}
}

// withProgramName replaces the program's name where running text quotes a command.
func withProgramName(text, name string) string {
	return strings.ReplaceAll(text, "`sbx ", "`"+name+" ")
}

// renamedExample replaces it at the start of every command of a pipeline.
func renamedExample(line, name string) string {
	parts := strings.Split(line, " | ")
	for i, part := range parts {
		if rest, ours := strings.CutPrefix(part, "sbx"); ours && (rest == "" || rest[0] == ' ') {
			parts[i] = name + rest
		}
	}
	return strings.Join(parts, " | ")
}

// formatsPerLine is how many formats fit beside the flag at 80 columns.
const formatsPerLine = 5

// formatHelp lists the formats, in lines that fit a narrow terminal.
func formatHelp() string {
	var lines []string
	for rest := output.Formats(); len(rest) > 0; {
		n := min(formatsPerLine, len(rest))
		lines, rest = append(lines, output.FormatHelp(rest[:n]...)), rest[n:]
	}
	return strings.Join(lines, "|\n")
}
