package recall

import (
	"context"
	"fmt"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
)

// MostUnlisted is how many sandboxes that a new listing does not have are read by their id at once.
const MostUnlisted = 20

// UnlistedSandbox is a sandbox of the last complete listing that the newest one does not have, while no
// end of it is on record.
type UnlistedSandbox struct {
	Sandbox sandbox.Sandbox // as it was read; as it was listed where Exists is not true
	Exists  sandbox.Verdict // by its id; unknown = it was not read, or could not be
	Err     error           // why it could not be read
}

// ReadUnlisted reads by id what the newest complete listings of f do not have and the last ones had, at
// most MostUnlisted. What has ended, by its own record or by that of a run, is left out.
func ReadUnlisted(ctx context.Context, e *ops.Env, f *fleet.Fleet) []UnlistedSandbox {
	rows := f.Unlisted()
	if len(rows) == 0 {
		return nil
	}
	requested, _ := f.Unconfirmed(ctx) // what cannot be read is read by id
	var asked, all []UnlistedSandbox
	for i, s := range rows {
		u := UnlistedSandbox{Sandbox: s, Exists: sandbox.Unknown}
		if i >= MostUnlisted {
			all = append(all, u)
			continue
		}
		_, ending := requested[s.Ref()]
		if _, ended := EndOf(ctx, e, s.Ref().String()); !ended && !ending {
			asked = append(asked, u)
		}
	}
	items := make([]sandbox.Sandbox, len(asked))
	for i, u := range asked {
		items[i] = u.Sandbox
	}
	f.ForEach(items, func(i int) { asked[i].readByID(ctx, f) })
	found := make([]UnlistedSandbox, 0, len(rows))
	for _, u := range asked {
		if u.Exists != sandbox.True || !u.Sandbox.State.Ended() {
			found = append(found, u)
		}
	}
	found = append(found, all...)
	var again []sandbox.Sandbox
	for _, u := range found {
		if u.Exists != sandbox.False {
			again = append(again, u.Sandbox)
		}
	}
	f.SettleUnlisted(again)
	return found
}

func (u *UnlistedSandbox) readByID(ctx context.Context, f *fleet.Fleet) {
	got, err := f.Get(ctx, u.Sandbox.Ref())
	switch kind := fault.KindOf(err); {
	case err == nil:
		u.Sandbox, u.Exists = got, sandbox.True
	case kind == fault.KindNotFound || kind == fault.KindGone:
		u.Exists = sandbox.False
	default:
		u.Err = err
	}
}

// UnlistedErrors are the listings of profiles that do not have what the profile has by its id, and the
// reads that failed.
func UnlistedErrors(e *ops.Env, found []UnlistedSandbox) []error {
	var errs []error
	living := map[string][]string{}
	var profiles []string
	for _, u := range found {
		switch profile := u.Sandbox.Provider; {
		case u.Err != nil:
			errs = append(errs, u.Err)
		case u.Exists == sandbox.True:
			if living[profile] == nil {
				profiles = append(profiles, profile)
			}
			living[profile] = append(living[profile], fmt.Sprintf("%s (%s)", u.Sandbox.Ref(), u.Sandbox.State))
		}
	}
	for _, profile := range profiles {
		first, _, _ := strings.Cut(living[profile][0], " ")
		errs = append(errs, fault.New(fault.KindUnavailable, "the list leaves out %d that the last one had and that still exist by their id: %s",
			len(living[profile]), strings.Join(living[profile], ", ")).At(profile, "list").
			WithHint("`%s inspect %s` shows one; no rule selects what is not listed, so end it by its name if it has to go", e.Process.Name(), first))
	}
	return errs
}

// UnlistedLines say which sandboxes of the last listing are not found any more, and how many were not
// read.
func UnlistedLines(found []UnlistedSandbox) []string {
	var absent []string
	unread := 0
	for _, u := range found {
		switch {
		case u.Exists == sandbox.False:
			absent = append(absent, u.Sandbox.Ref().String())
		case u.Exists == sandbox.Unknown && u.Err == nil:
			unread++
		}
	}
	var lines []string
	if len(absent) > 0 {
		lines = append(lines, fmt.Sprintf("%d of the last complete listing are not listed any more, and not found by their id; no end of them is on record: %s",
			len(absent), strings.Join(absent, ", ")))
	}
	if unread > 0 {
		lines = append(
			lines,
			fmt.Sprintf("%d more of the last complete listing are not listed any more, and were not read: at most %d are at once", unread, MostUnlisted),
		)
	}
	return lines
}
