package cleanup

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Guard is one limit on what a run may do. A guard that says no refuses the whole
// run: never the first N of it.
type Guard struct {
	Name  string  `json:"name"`
	Limit float64 `json:"limit"`
	Value float64 `json:"value"`
	OK    bool    `json:"ok"`

	objection string // what is wrong, in words
	hint      string // what to type to allow it
}

// Guards are the limits of a run over this survey.
func (s Survey) Guards(w World) []Guard {
	guards := []Guard{maxDelete(len(s.Selected), w.Limits.MaxDelete)}
	for _, share := range s.Shares {
		if share.Err != nil || share.Selected == 0 {
			continue
		}
		guards = append(guards, maxFraction(share, w.Limits.MaxFraction))
		if share.Skew != 0 {
			guards = append(guards, clock(share))
		}
		if w.profile(share.Profile).Production {
			guards = append(guards, production(share, w.Limits.Production))
		}
	}
	return guards
}

func maxDelete(n, limit int) Guard {
	return Guard{
		Name: "max_delete", Limit: float64(limit), Value: float64(n), OK: n <= limit,
		objection: fmt.Sprintf("%d sandboxes would end, more than --max-delete %d", n, limit),
		hint:      fmt.Sprintf("--max-delete %d", n),
	}
}

func maxFraction(share Share, limit int) Guard {
	percent := 100 * share.Selected / max(share.Fleet, 1)
	needed := (100*share.Selected + share.Fleet - 1) / max(share.Fleet, 1)
	return Guard{
		Name: "max_fraction " + share.Profile, Limit: float64(limit) / 100, Value: float64(share.Selected) / float64(max(share.Fleet, 1)),
		OK: share.Selected <= FractionFrom || 100*share.Selected <= limit*share.Fleet,
		objection: fmt.Sprintf("%d of the %d sandboxes of %s would end, %d%% and more than --max-fraction %d%%",
			share.Selected, share.Fleet, share.Profile, percent, limit),
		hint: fmt.Sprintf("--max-fraction %d%%", min(needed, 100)),
	}
}

func clock(share Share) Guard {
	way := "ahead of"
	if share.Skew < 0 {
		way = "behind"
	}
	return Guard{
		Name: "clock " + share.Profile, Limit: MaxSkew.Seconds(), Value: share.Skew.Round(time.Second).Seconds(), OK: share.Skew.Abs() <= MaxSkew,
		objection: fmt.Sprintf("the clock of %s is %s %s this machine's, so that no age can be trusted", share.Profile, sandbox.FormatDuration(share.Skew.Abs()), way),
		hint:      "set this machine's clock right",
	}
}

func production(share Share, named []string) Guard {
	return Guard{
		Name: "production " + share.Profile, Limit: 0, Value: float64(share.Selected), OK: slices.Contains(named, share.Profile),
		objection: fmt.Sprintf("%d sandboxes of %s, which is production, would end", share.Selected, share.Profile),
		hint:      "--production " + share.Profile,
	}
}

// Refusal joins the objections of all guards that say no; nil when none does.
func Refusal(guards []Guard) error {
	var objections, flags []string
	for _, g := range guards {
		if g.OK {
			continue
		}
		objections = append(objections, g.objection)
		if strings.HasPrefix(g.hint, "--") {
			flags = append(flags, g.hint)
		}
	}
	if len(objections) == 0 {
		return nil
	}
	err := fault.New(fault.KindRefused, "%s; nothing was done", strings.Join(objections, "; "))
	if len(flags) == len(objections) {
		return err.WithHint("look at the plan first (without --yes); then, if that is what you want: %s", strings.Join(flags, " "))
	}
	for _, g := range guards {
		if !g.OK && !strings.HasPrefix(g.hint, "--") {
			return err.WithHint("%s", g.hint)
		}
	}
	return err
}
