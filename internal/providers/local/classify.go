package local

import (
	"time"

	"sbx/internal/providers/local/record"
	"sbx/internal/sandbox"
)

func exitOf(r record.Record) *sandbox.Exit { e := classify(r.EndedAt, r.Exit, &r); return &e }

func classify(at time.Time, e *record.Exit, r *record.Record) sandbox.Exit {
	_ = at
	_ = r
	return sandbox.Exit{Raw: rawExit(e), Code: e.Code}
}
