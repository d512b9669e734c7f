package commands

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

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
	doc := document{schema: "sbx.runbook.new/v1", shape: output.ShapeItem, columns: output.Names(views.DraftColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
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
		return d.writeRunbook(p, doc.schema, args[0], text, out)
	})
}

// shippedText is the document of a shipped runbook.
func (d *Deps) shippedText(ctx context.Context, id string) (string, error) {
	catalog, err := d.shippedRunbooks(ctx)
	if err != nil {
		return "", err
	}
	book, err := catalog.Find(id)
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
