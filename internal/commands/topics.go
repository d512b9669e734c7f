package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sbx/docs"
	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// helpTopics are the pages of `sbx help` that belong to no command.
func helpTopics(d *Deps) []*cobra.Command {
	topic := func(name, short, long string) *cobra.Command {
		return &cobra.Command{Use: name, Short: short, Long: long}
	}
	return []*cobra.Command{
		topic("exit-codes", "What each exit code means to a script or a cron line", views.ExitCodesHelp()),
		topic("output", "The formats of -o, and what goes where", outputHelp()),
		topic("selectors", "How to choose sandboxes: ages, times, labels, states", selectorsHelp),
		topic("conditions", "Conditions of --where: names, units, what is unknown", conditionsPage()),
		topic("environment", "The environment variables that sbx reads", environmentHelp(d.Types)),
		topic("labels", "Which labels sbx reads, and where providers keep them", labelsHelp(d.Types)),
		topic("glossary", "What each word means", "`sbx help glossary` explains every word of the output, of JSON and of the pages."),
		topic(
			"json", "The JSON documents, key by key, and their schemas",
			"`sbx help json` lists the documents, `sbx help json NAME` explains the keys of one,\n`sbx help json --schema NAME` prints its JSON Schema.",
		),
	}
}

// knowTopics makes `help` refuse what it has no page for, and print the pages that are files;
// cobra's own shows the first page instead.
func (d *Deps) knowTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err)
	}
	schema := help.Flags().String("schema", "", "with json: print the JSON Schema of this `DOCUMENT`")
	completeFlag(help, "schema", documentNames)
	help.ValidArgsFunction = withTopics(root, help.ValidArgsFunction)
	help.Args = func(_ *cobra.Command, args []string) error {
		found, rest, err := root.Find(args)
		if err == nil && len(rest) > 0 && found.IsAdditionalHelpTopicCommand() && found.Name() != "json" {
			return fault.Usage("%s is one page, without %q", found.Name(), rest[0]).WithHint("`sbx help %s` shows it", found.Name())
		}
		if err != nil || !found.HasSubCommands() || len(rest) == 0 {
			return err
		}
		refused := fault.Usage("no help on %q", rest[0])
		if near := helpTopic(found, rest[0]); near != "" {
			return refused.WithHint("did you mean `sbx help %s`?", near)
		}
		return refused.WithHint("`%s --help` lists the commands", found.CommandPath())
	}
	plain := help.Run
	help.Run = nil
	help.RunE = func(cmd *cobra.Command, args []string) error {
		topic := strings.Join(args[:min(1, len(args))], "")
		switch {
		case *schema != "":
			return printSchema(cmd, *schema)
		case topic == "json":
			return printDocuments(cmd, args[1:])
		case topic == "glossary":
			page, err := docs.Files.ReadFile("GLOSSARY.md")
			printPage(cmd, views.PlainPage(string(page)))
			return err
		}
		plain(cmd, args)
		return nil
	}
	root.RemoveCommand(help) // cobra adds it when it is asked for
}

// withTopics completes the pages that belong to no command, too: cobra's own completion leaves them out.
func withTopics(root *cobra.Command, commands cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 && args[0] == "json" {
			return documentNames(), cobra.ShellCompDirectiveNoFileComp
		}
		words, directive := commands(cmd, args, begun)
		for _, topic := range root.Commands() {
			if len(args) == 0 && topic.IsAdditionalHelpTopicCommand() && strings.HasPrefix(topic.Name(), begun) {
				words = append(words, cobra.CompletionWithDesc(topic.Name(), topic.Short))
			}
		}
		return words, directive
	}
}

func printPage(cmd *cobra.Command, page string) {
	fmt.Fprint(cmd.OutOrStdout(), withProgramName(page, cmd.Root().Name()))
}

// documentNames are the names that `sbx help json` takes.
func documentNames() []string {
	files, err := docs.Files.ReadDir("schemas")
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range files {
		if name, ok := strings.CutPrefix(f.Name(), "sbx."); ok {
			names = append(names, strings.TrimSuffix(name, ".v1.json"))
		}
	}
	return names
}

// documentName finds a document by its name, by the command that prints it or by its schema.
func documentName(words []string) (string, error) {
	word := strings.Join(words, ".")
	word = strings.TrimSuffix(strings.TrimPrefix(word, "sbx."), "/v1")
	if names := documentNames(); !slices.Contains(names, word) {
		return "", fault.Usage("no document is called %q", word).WithHint("%s", fault.Meant(word, names))
	}
	return word, nil
}

func printSchema(cmd *cobra.Command, word string) error {
	name, err := documentName(strings.Fields(word))
	if err != nil {
		return err
	}
	text, err := docs.Files.ReadFile("schemas/sbx." + name + ".v1.json")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(b.Bytes())
	return err
}

// printDocuments prints the page of all documents up to the first, with their names, or the
// section of one.
func printDocuments(cmd *cobra.Command, words []string) error {
	text, err := docs.Files.ReadFile("schemas/README.md")
	if err != nil {
		return err
	}
	sections := strings.Split(string(text), "\n## ")
	if len(words) == 0 {
		names := "  " + strings.Join(documentNames(), "\n  ") + "\n"
		printPage(cmd, views.PlainPage(sections[0])+"\nDocuments:\n\n"+names)
		return nil
	}
	name, err := documentName(words)
	if err != nil {
		return err
	}
	for _, s := range sections[1:] {
		if title, body, _ := strings.Cut(s, "\n"); title == name {
			printPage(cmd, strings.TrimLeft(body, "\n"))
		}
	}
	return nil
}

const selectorsHelp = `Selectors choose sandboxes in ls and cleanup; all that are given must hold.

  --state STATE        running, paused, ...; repeatable, any of them
  --older-than AGE     created longer ago than that
  --younger-than AGE   created less long ago
  --before TIME        created before that moment
  --after TIME         created after it
  --label K=V          with this label; K alone for any value; repeatable: the
                       values of one key are alternatives, keys must all hold
  --name GLOB          whose whole name matches: * ? [a-z]
  --task ID            of this task; --agent-type TYPE, --owner NAME and
                       --template NAME likewise
  --exit-code N        whose program ended with this code; also ended ones
  --where CONDITION    for which the condition holds: ` + "`sbx help conditions`" + `
  --stuck              stuck, by the rule of the runbook: old enough, and no
                       sign of life where one would show

  AGE    200ms, 90s, 10m, 1.5h, 3d, 1w, 1h30m
  TIME   2026-11-22, 2026-11-22T12:00, 12:00 (today), yesterday, RFC 3339,
         or an AGE (that long ago). Without a zone it is UTC, like all that
         is printed.
  SIZE   512M, 512MB, 512Mi (the same, 1024-based), 1.5G

A number without a unit is refused, and so is an empty value: an unset shell
variable must never mean "no limit". A sandbox of which a selector cannot be
judged, such as an age that is not known, is not chosen.

A REF names one sandbox: PROFILE/ID, or a bare word: an id, else a name, else
its task (not one of sbx run), else the beginning of an id of 4 characters or
more. Several matches are an error that lists them. - reads REFs from standard
input.
`

func outputHelp() string {
	return "Data goes to standard output, everything else (notes, progress, errors,\n" +
		"questions) to standard error.\n\n" +
		`  table           for people; in a pipe tab-separated, with a header, uncut,
                  unless -o table asks for it: then its width is COLUMNS
  wide            the same with more columns
  csv             comma-separated, with a header
  json            one document; ` + "`sbx help json`" + ` explains each key
  ndjson          one JSON object a line, as they come, and last a summary
  yaml            the document of json as YAML
  name            one REF a line and nothing else, for another sbx
  nagios          one line of a monitoring plugin; only checks have it
  template=STR    the document of json through a Go template:
                  '{{range .items}}{{.ref}}{{"\n"}}{{end}}'
  template-file=F the same from a file
  jq=EXPR         the document of json through jq: '.items[].ref'

--columns chooses columns by their JSON keys. Times are RFC 3339 in UTC; on a
terminal they are relative. What is not known is null in JSON, empty in a pipe
and - on a terminal.

An error is "sbx: error: WHAT" with "sbx: hint: WHAT TO DO"; in a JSON document
it is in "errors". A wrong use (exit 2) leaves standard output empty and, where
json, ndjson or yaml is asked for, is one JSON object on standard error.

Colour is used on a terminal. NO_COLOR, SBX_NO_COLOR, --no-color and TERM=dumb
turn it off, CLICOLOR_FORCE turns it on in a pipe too; NO_COLOR wins.
`
}

// environmentHelp lists the variables of sbx, of the system and of the providers.
func environmentHelp(types []providers.Type) string {
	var b strings.Builder
	b.WriteString("A flag wins over the environment, that over the configuration files.\n\n")
	row := func(name, about string) { b.WriteString(views.Definition(name, about, 27)) }
	for _, v := range config.Variables() {
		row(v.Name, v.Help)
	}
	b.WriteString("\nProviders. A credential enables its profile unless a profile is configured\nfor that account:\n\n")
	for _, t := range types {
		for _, o := range t.Options {
			if o.Env != "" {
				row(o.Env, t.Name+": "+o.Help)
			}
		}
	}
	b.WriteString("\nThe variables of task launch are listed in docs/TASKS.md.\n")
	return b.String()
}

func labelsHelp(types []providers.Type) string {
	var b strings.Builder
	b.WriteString("The labels that sbx reads, whether sbx or another program set them\n\n")
	row := func(label, about string) { b.WriteString(views.Definition(label, about, 18)) }
	row(sandbox.LabelOwner, "who owns it. In a profile without `owned`, cleanup and reconcile terminate only sandboxes with it")
	for _, m := range config.MetadataRows() {
		if m.Own != sandbox.LabelOwner {
			row(m.Own, m.Help+"; also "+m.Default)
		}
	}
	row(sandbox.LabelKeep, "true, or a time (RFC 3339): nothing terminates it until then; `sbx keep` writes it")
	b.WriteString("\n`create` and `run` set the first three. If your own labels have other names, set `metadata` in the configuration; the owner read " +
		"from such a label is for display: `sbx config own` decides what is yours and sets what cleanup may terminate.\n\nHow to set them without sbx\n\n")
	for _, t := range types {
		if t.LabelsIn != "" {
			b.WriteString(views.Definition(t.Name, strings.ReplaceAll(t.LabelsIn, "`", ""), 13))
		}
	}
	return b.String()
}
