package commands

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/views"
)

func newRunbookNew(d *Deps) *cobra.Command {
	var title, owner, alert, out string
	var shippedOne bool
	cmd := &cobra.Command{
		Use:        "new ID",
		SuggestFor: []string{"init", "create", "add"},
		Short:      "Write a runbook of your own to begin with",
		Long: "Write a runbook of your own to begin with. It has one step of each common kind, and\n" +
			"`sbx runbook lint` finds nothing wrong with it.\n\n" +
			"It is written into the folder runbooks beside the configuration, where every command\n" +
			"finds it. An existing file is not changed (exit 11). The id of a shipped runbook is\n" +
			"refused (exit 11), since a runbook of yours with that id replaces it; so is an alert\n" +
			"that leads to another runbook. --copy begins with the shipped one of that id instead.",
		Example:           "sbx runbook new slow-agents\nsbx runbook new sandbox-stuck --copy\nsbx runbook new slow-agents --alert AgentLatencyHigh --owner 'Agent Team'",
		Args:              usageArgs(oneArg("ID"), "name the runbook with small letters, digits and hyphens"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringVar(&title, "title", "", "its `TITLE`; default: the id in words")
	f.StringVar(&owner, "owner", "my team", "the `TEAM` that keeps it")
	f.StringVar(&alert, "alert", "", "the `ALERT` that leads to it; one of another system is accepted too")
	f.StringVar(&out, "out", "", "write it to `FILE`; - is standard output")
	f.BoolVar(&shippedOne, "copy", false, "begin with the shipped runbook of that id, as it is")
	completeFlag(cmd, "alert", runbook.AlertIDs)
	return d.completeVerb(cmd, writtenRunbook("sbx.runbook.new/v1"), func(ctx context.Context, p *output.Printer, args []string) error {
		if shippedOne && (f.Changed("title") || f.Changed("owner") || f.Changed("alert")) {
			return fault.Usage("--copy excludes --title, --owner and --alert").WithHint("a copy begins as it was shipped; edit it")
		}
		var text string
		var err error
		if shippedOne {
			text, err = d.shippedText(ctx, args[0])
		} else if err = d.refuseToReplace(ctx, args[0], alert); err == nil {
			text, err = runbook.New(args[0], title, owner, alert, d.Now())
		}
		if err != nil {
			return err
		}
		return d.writeRunbook(p, "sbx.runbook.new/v1", args[0], text, out)
	})
}

// shippedText is the document of a shipped runbook.
func (d *Deps) shippedText(ctx context.Context, id string) (string, error) {
	shelf, err := d.shippedRunbooks(ctx)
	if err != nil {
		return "", err
	}
	book, err := shelf.Find(id)
	if err != nil {
		return "", err
	}
	return book.Text(), nil
}

// refuseToReplace keeps a new document from replacing a shipped one, and from taking the alert of
// another.
func (d *Deps) refuseToReplace(ctx context.Context, id, alert string) error {
	shipped, err := d.shippedRunbooks(ctx)
	if err != nil {
		return err
	}
	all, err := d.loadRunbooks(ctx)
	if err != nil {
		return err
	}
	return all.RefuseToReplace(id, alert, shipped)
}

func writtenRunbook(schema string) document {
	return document{schema: schema, shape: output.ShapeItem, columns: output.Names(views.DraftColumns())}
}

// writeRunbook writes a new document and says where.
func (d *Deps) writeRunbook(p *output.Printer, schema, id, text, out string) error {
	if out == "-" {
		if p.Format.Name() == output.Table && len(p.Columns) == 0 {
			_, err := io.WriteString(p.Stdout(), text)
			return err
		}
		return views.ShowDraft(p, schema, id, "", text)
	}
	library, err := d.library()
	if err != nil {
		return err
	}
	path := cmp.Or(out, filepath.Join(library.Folder, id+".yaml"))
	if out == "" && library.Folder == "" {
		return fault.Usage("there is no home directory for a folder of runbooks").WithHint("--out names the file to write")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fault.New(fault.KindUnknown, "the folder cannot be made: %w", err)
	}
	switch err := hostfile.Create(path, []byte(text), 0o600); {
	case errors.Is(err, fs.ErrExist):
		return fault.New(fault.KindRefused, "%s exists already and was not changed", path).WithHint("edit it, or choose another id")
	case err != nil:
		return fault.New(fault.KindUnknown, "the runbook cannot be written: %w", err).WithHint("--out names another file")
	}
	p.Note("`" + d.Process.Name() + " runbook lint " + views.ShellWord(path) + "` checks it after a change")
	return views.ShowDraft(p, schema, id, path, text)
}

func newRunbookImport(d *Deps) *cobra.Command {
	var id, out string
	cmd := &cobra.Command{
		Use:        "import FILE.md",
		SuggestFor: []string{"convert", "from"},
		Short:      "Make a runbook of a page of Markdown",
		Long: "Make a runbook of a page of Markdown: each heading becomes a manual step, each block of\n" +
			"code its commands. Headings Meaning, Impact and Verification become those parts. It\n" +
			"works at once as a checklist; replace a step by what sbx collects or does when you\n" +
			"like. `-` reads standard input.\n\n" +
			"A block of code that is never closed is refused with its line: it would turn the rest\n" +
			"of the page into commands.",
		Example: "sbx runbook render state-drift | sbx runbook import - --id mine --out -",
		Args:    usageArgs(oneArg("FILE.md"), "name one file, or -"),
	}
	cmd.ValidArgsFunction = completeFiles
	f := cmd.Flags()
	f.StringVar(&id, "id", "", "its `ID`; default: the name of the file")
	f.StringVar(&out, "out", "", "write it to `FILE`; - is standard output")
	return d.completeVerb(cmd, writtenRunbook("sbx.runbook.import/v1"), func(ctx context.Context, p *output.Printer, args []string) error {
		content, err := d.readPage(ctx, args[0])
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0]))
		own := cmp.Or(id, runbook.Slug(name))
		text, err := runbook.Import(args[0], own, string(content), d.Now())
		if err == nil && out == "" {
			err = d.refuseToReplace(ctx, own, "")
		}
		if err != nil {
			return err
		}
		return d.writeRunbook(p, "sbx.runbook.import/v1", own, text, out)
	})
}

func (d *Deps) readPage(ctx context.Context, file string) ([]byte, error) {
	if file == "-" {
		content, err := io.ReadAll(io.LimitReader(d.Process.Stdin, runbook.MaxFile+1))
		if err == nil && len(content) > runbook.MaxFile {
			err = fault.Usage("standard input is larger than 1 MiB")
		}
		return content, err
	}
	content, err := hostfile.Read(ctx, file, runbook.MaxFile)
	if err != nil && ctx.Err() == nil {
		return nil, fault.Usage("the page cannot be read: %w", err)
	}
	return content, err
}

func newRunbookURL(d *Deps) *cobra.Command {
	var base string
	cmd := &cobra.Command{
		Use:   "url ALERT",
		Short: "Print what belongs into the runbook_url of an alert",
		Long: "Print what belongs into the runbook_url of an alert: the page of the runbook that the\n" +
			"alert leads to. Without --base it is the path in the repository.",
		Example: "sbx runbook url sandbox_leak_detected\nsbx runbook url sandbox_leak_detected --base https://wiki.example/runbooks",
		Args:    usageArgs(oneArg("ALERT"), "`sbx runbook ls` lists the alerts"),
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			shelf, err := d.loadRunbooks(cmd.Context())
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var words []string
			for _, b := range shelf.Books {
				words = append(words, b.AlertNames()...)
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().StringVar(&base, "base", "runbooks", "the `URL` of the folder with the pages")
	doc := document{schema: "sbx.runbook.url/v1", shape: output.ShapeItem, columns: output.Names(views.RunbookURLColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		shelf, err := d.loadRunbooks(ctx)
		if err != nil {
			return err
		}
		book, err := shelf.ForAlert(args[0])
		if err != nil {
			return err
		}
		return views.ShowRunbookURL(p, doc.schema, args[0], string(book.Metadata.ID), strings.TrimRight(base, "/")+"/"+book.PageName())
	})
}
