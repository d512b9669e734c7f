package end

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/hostfile"
	"sbx/internal/reconcile"
	"sbx/internal/runs"
	"sbx/internal/store"
)

// The words of --records.
const (
	fromProvider = "provider"
	fromStore    = "store"
	fromTasks    = "tasks:"
)

// recordSources says for each profile where its records come from. What is ill-formed is
// fault.KindUsage, before anybody is asked.
func (r *reconcileRun) recordSources(ctx context.Context, f *fleet.Fleet) (map[string]reconcile.Source, error) {
	if tasks, ok := strings.CutPrefix(r.req.Records, fromTasks); ok {
		return r.taskSources(ctx, f, tasks)
	}
	if r.req.Records != "" && r.req.Records != fromProvider && r.req.Records != fromStore {
		return nil, fault.Usage("--records: %q is not a source", r.req.Records).WithHint("write provider, store, tasks:FILE.csv, tasks:FILE.jsonl or tasks:postgres://...")
	}
	all := map[string]reconcile.Source{}
	for _, name := range f.Names() {
		if r.req.Records == fromProvider || r.req.Records == "" && f.HasRecords(name) && !r.req.Rules.Adopt {
			all[name] = reconcile.FromProvider(f, name)
		} else {
			all[name] = reconcile.FromStore(r.store, name, reconcile.Owner{
				Who: r.env.ActsAs(runs.VerbReconcile), Host: r.env.Process.Host, Now: r.env.Now, HostBound: r.env.ProfileFacts(name).HostBound,
			})
		}
	}
	return all, nil
}

// taskSources are the sources of one profile: by them, the sandboxes of every other would be
// orphans.
func (r *reconcileRun) taskSources(ctx context.Context, f *fleet.Fleet, from string) (map[string]reconcile.Source, error) {
	if names := f.Names(); len(names) != 1 {
		return nil, fault.Usage("--records: tasks need one profile, but %d are selected: %s", len(names), strings.Join(names, ", ")).
			WithHint("name it with --provider")
	}
	source, err := taskSource(ctx, from)
	return map[string]reconcile.Source{f.Names()[0]: source}, err
}

// taskSource reads a dump at once, so that a broken one is refused before anybody
// is asked; a database is asked when its turn comes.
func taskSource(ctx context.Context, from string) (reconcile.Source, error) {
	if strings.Contains(from, "://") {
		return reconcile.FromTasks("tasks", time.Time{}, func(ctx context.Context) ([]store.TaskRow, error) { return store.ReadTasks(ctx, from) }), nil
	}
	rows, taken, err := readDump(ctx, from)
	return reconcile.FromTasks(fromTasks+filepath.Base(from), taken, func(context.Context) ([]store.TaskRow, error) { return rows, nil }), err
}

// readDump reads a dump whole. It was taken when its file was last written.
func readDump(ctx context.Context, path string) ([]store.TaskRow, time.Time, error) {
	const hint = "write tasks:FILE.csv or tasks:FILE.jsonl"
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fault.Usage("%s: not a file", path)
	}
	if err != nil {
		return nil, time.Time{}, fault.Usage("--records: %w", err).WithHint(hint)
	}
	text, err := hostfile.File{Flag: "--records", Path: path, Limit: reconcile.MaxDump, Hint: hint}.Read(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	rows, err := reconcile.ReadDump(path, bytes.NewReader(text))
	return rows, info.ModTime(), err
}
