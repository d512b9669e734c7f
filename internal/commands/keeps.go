package commands

import (
	"context"
	"encoding/json"

	"sbx/internal/fleet"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// endExpired ends the kept sandboxes whose time is over, for a moment at most. Their
// providers give them longer: a life covers all that an attempt may take, and the
// time of keeping begins with its end. What is not seen to end stays on the list for
// the next verb.
func (d *Deps) endExpired(ctx context.Context, p *output.Printer, st store.DocStore, options task.Options) {
	ctx, stop := context.WithTimeout(ctx, task.SweepTime)
	defer stop()
	docs, err := st.Docs(ctx, KeptKind)
	if err != nil {
		return // sweepTasks has said that the store cannot be read
	}
	listed, expired := map[sandbox.Ref]store.Doc{}, map[bool][]sandbox.Sandbox{}
	for _, doc := range docs {
		ref, err := sandbox.ParseRef(doc.Key)
		if k, ok := ReadKept(doc); ok && err == nil && !k.Holds(doc) {
			listed[ref] = doc
			deletes := options.Deletes != nil && options.Deletes(ref.Provider)
			expired[deletes] = append(expired[deletes], sandbox.Sandbox{Provider: ref.Provider, ID: ref.ID, State: sandbox.StateRunning})
		}
	}
	for deletes, some := range expired {
		o := fleet.EndOptions{Wait: task.SweepTime, By: options.Owner.Who, Delete: deletes}
		for e := range options.Sandboxes.Terminate(ctx, some, o) {
			if e.Outcome == sandbox.OutcomeVerified || e.Outcome == sandbox.OutcomeAlreadyGone {
				p.Note(e.Ref.String() + " was kept until its time was over: it is gone now")
				_ = st.DropDoc(ctx, listed[e.Ref]) // who has dropped it first has seen the same
			}
		}
	}
}

// ReadKept reads a document of KeptKind; false = it is none.
func ReadKept(doc store.Doc) (KeptRow, bool) {
	var k KeptRow
	return k, doc.Version > 0 && json.Unmarshal(doc.Body, &k) == nil
}

// Holds says that the sandbox was still kept when the document was read.
func (k KeptRow) Holds(doc store.Doc) bool { return doc.ReadAt.Before(k.ExpiresAt) }
