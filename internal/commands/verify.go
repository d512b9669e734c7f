package commands

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

const verifySchema = "sbx.verify/v1"

func newVerify(d *Deps) *cobra.Command {
	var untilOK, every, unknownAs string
	cmd := &cobra.Command{
		Use:     "verify",
		GroupID: groupLook,
		Short:   "Compare the sandboxes with the five targets of the runbook",
		Long: "Compare the sandboxes with the five targets of the runbook: how many run, how old\n" +
			"they are, whether cleanup runs, how many hit a time limit, and how full the quotas\n" +
			"are. It changes nothing. The first line says what was ended in the last hour, by what is\n" +
			"on record, and how many are stuck now; -v shows what each target rests on.\n\n" +
			"Exit 0: every target is met. 10: one is missed. 3: a provider could not be asked.\n" +
			"7: one is not known. A target without data, for example a quota that no provider\n" +
			"reports or a share of too few tasks, counts as met and is shown as \"no data yet\";\n" +
			"--unknown-as decides what it and every other unknown target count as. `thresholds` in\n" +
			"the configuration sets the targets. With -o nagios it is a monitoring plugin.\n\n" +
			"--until-ok ends with the last round, and exits with its code. If it is interrupted, or\n" +
			"--timeout ends it, it still prints the last complete round, and exits 130, 143 or 124; with\n" +
			"-o nagios the exit code is that of the printed state, and 3 (UNKNOWN) where no round is\n" +
			"complete. --every without --until-ok repeats until it is interrupted.",
		Example: "sbx verify\nsbx verify --until-ok 10m\nsbx verify --every 5m\nsbx verify --unknown-as ok",
		Args:    d.noWords("--provider names the profiles to verify"),
	}
	cmd.Flags().StringVar(&untilOK, "until-ok", "", "repeat until every target is met, at most for a `DURATION`")
	cmd.Flags().StringVar(&every, "every", "", "repeat, with `DURATION` between two rounds (--until-ok: 30s)")
	cmd.Flags().StringVar(&unknownAs, "unknown-as", "", "what a target that is not known counts as: ok, warn, crit or unknown, a `WORD`")
	completeFlag(cmd, "unknown-as", views.UnknownChoices)
	doc := document{
		schema: verifySchema, shape: output.ShapeItem, columns: output.Names(views.VerifyColumns()), nagios: true,
		refuses: output.RowFormats(),
	}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		req, err := verifyRequest(untilOK, every)
		if err != nil {
			return err
		}
		asked := cmd.Flags().Changed("unknown-as")
		if asked && !slices.Contains(views.UnknownChoices(), unknownAs) {
			return fault.Usage("--unknown-as is ok, warn, crit or unknown, not %q", unknownAs)
		}
		req.UnknownPasses, req.NoDataIsUnknown = unknownAs == string(views.UnknownIsOK), asked
		v := &verifyCommand{d: d, p: p, req: req, unknownAs: views.UnknownAs(unknownAs)}
		if every != "" && untilOK == "" {
			return v.repeatVerify(ctx)
		}
		_, err = v.runOnce(ctx)
		return err
	})
}

// verifyCommand is one `sbx verify`.
type verifyCommand struct {
	d         *Deps
	p         *output.Printer
	req       look.VerifyRequest
	unknownAs views.UnknownAs
}

// runOnce verifies, and shows the last complete round, also where that was interrupted. The result
// is nil where none is complete.
func (v *verifyCommand) runOnce(ctx context.Context) (*look.VerifyResult, error) {
	r, err := look.Verify(ctx, v.d.Env, v.req, v.d.newObserver(v.p, nil))
	if r == nil {
		return nil, err
	}
	return r, views.ShowVerification(v.p, verifySchema, r, v.unknownAs, causeOr(ctx, err))
}

// repeatVerify verifies again and again until it is interrupted. A target that is missed does not
// end it.
func (v *verifyCommand) repeatVerify(ctx context.Context) error {
	if err := v.p.Format.Refuse("verify --every", append(output.Documents(), output.Nagios)...); err != nil {
		return err
	}
	pace := time.NewTicker(v.req.Every)
	defer pace.Stop()
	for {
		r, err := v.runOnce(ctx)
		if cause := unshownCause(ctx, err); cause != nil || r == nil { // it was interrupted, or the configuration is wrong
			return cmp.Or(cause, err)
		}
		if v.p.Broken() != nil { // nobody reads on
			return err
		}
		v.p.Note("the next round comes within " + sandbox.FormatDuration(v.req.Every))
		if err := v.d.PauseRound(ctx, pace.C); err != nil {
			return err
		}
	}
}

func verifyRequest(untilOK, every string) (req look.VerifyRequest, err error) {
	if req.UntilOK, err = optionalDuration("--until-ok", untilOK); err != nil {
		return req, err
	}
	if req.Every, err = optionalDuration("--every", cmp.Or(every, "30s")); err != nil {
		return req, err
	}
	if untilOK == "" {
		err = refuseShort("--every", req.Every)
	}
	return req, err
}
