package commands

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops/recall"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

const auditSchema = "sbx.audit/v1"

type auditOptions struct {
	since    string
	verbs    []string
	outcomes []string
	who      string
	limit    int
}

func newAudit(d *Deps) *cobra.Command {
	o := auditOptions{since: "7d"}
	cmd := &cobra.Command{
		Use:     "audit [REF|TASK|RUN]",
		GroupID: groupLook,
		Short:   "List what was terminated, by whom, why, and the outcome",
		Long: "List every request to terminate, delete or extend a sandbox, and every repair of a record:\n" +
			"who made it, with which verb, why, and the outcome. Newest first.\n\n" +
			"It is read from the journals of this machine, which are written before each request, and\n" +
			"from what other hosts have reported to a shared store (store.url). An outcome that no\n" +
			"journal knows is `unknown` (empty in a pipe, null in JSON): the run was interrupted.\n" +
			"What a sandbox ends by itself, such as by its --ttl, is no act.\n\n" +
			"If a journal was changed, emptied or removed, the list says so (exit 10). That the oldest\n" +
			"or the newest was removed cannot be seen.",
		Example: "sbx audit\nsbx audit --since 24h --verb cleanup\nsbx audit local/k3v9x2mq7a\n" +
			"sbx audit --outcome failed,stuck,unknown\nsbx audit --since 30d -o ndjson >audit.jsonl",
		Args:              usageArgs(atMostOneArg("REF|TASK|RUN"), "without one, all are listed"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.since, "since", o.since, "since `TIME`: 24h (ago), yesterday, 2026-11-20")
	f.StringSliceVar(&o.verbs, "verb", nil, "only of this `VERB` (repeatable)")
	f.StringSliceVar(&o.outcomes, "outcome", nil, "only with this `OUTCOME` (repeatable)")
	f.StringVar(&o.who, "by", "", "only by this `USER`")
	f.IntVar(&o.limit, "limit", 0, "the newest `N` alone")
	completeFlag(cmd, "verb", recall.AuditVerbs)
	completeFlag(cmd, "outcome", auditOutcomes)
	doc := document{schema: auditSchema, shape: output.ShapeList, columns: output.Names(views.ActColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		req, err := o.readRequest(args, d.Now())
		if err != nil {
			return err
		}
		req.Profiles = d.Globals.Providers
		r, err := recall.Audit(ctx, d.Env, req)
		if err != nil {
			return err
		}
		return views.ShowAudit(p, auditSchema, r, req)
	})
}

// unknownOutcome is how an outcome that no journal knows is written.
const unknownOutcome = "unknown"

func auditOutcomes() []string { return append(wordsOf(sandbox.Outcomes()), unknownOutcome) }

func (o auditOptions) readRequest(args []string, now time.Time) (recall.AuditRequest, error) {
	req := recall.AuditRequest{Verbs: o.verbs, Who: o.who, Limit: o.limit}
	if len(args) > 0 {
		if req.Subject = args[0]; req.Subject == "" {
			return req, fault.Usage("a REF, TASK or RUN is empty").WithHint("is a shell variable unset? without one all acts are listed")
		}
	}
	for _, word := range o.verbs {
		if !slices.Contains(recall.AuditVerbs(), word) {
			return req, fault.Usage("--verb: %q is not a verb of which a journal tells", word).WithHint("%s", fault.Meant(word, recall.AuditVerbs()))
		}
	}
	for _, word := range o.outcomes {
		if !slices.Contains(auditOutcomes(), word) {
			return req, fault.Usage("--outcome: %q is not an outcome", word).WithHint("%s", fault.Meant(word, auditOutcomes()))
		}
		if word == unknownOutcome {
			word = ""
		}
		req.Outcomes = append(req.Outcomes, sandbox.Outcome(word))
	}
	if o.limit < 0 {
		return req, fault.Usage("--limit: %d is not a number of acts", o.limit)
	}
	age, err := optionalAge("--since", o.since, now)
	req.Since = now.Add(-age)
	if o.since == "" {
		req.Since = time.Time{}
	}
	return req, err
}
