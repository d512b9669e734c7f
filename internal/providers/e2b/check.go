package e2b

import (
	"context"
	"fmt"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

func counted(running, paused int) string {
	return fmt.Sprintf("answers; %d running, %d paused", running, paused)
}

// Novita is Novita's dialect with what only it can: tell an account's limits.
type Novita struct{ *Client }

// WhyNot says why an ability is missing.
func (n *Novita) WhyNot(ability string) string {
	if ability == "quota" {
		return ""
	}
	return n.Client.WhyNot(ability)
}

// Quota reads what the account may hold at once; older domains do not tell.
func (n *Novita) Quota(ctx context.Context) ([]providers.Quota, error) {
	var w wireQuota
	if _, err := n.api.JSON(ctx, httpx.Request{Op: "quota", Path: "/sandboxes/quota"}, &w); err != nil {
		if absent(err) {
			return nil, fault.New(fault.KindUnsupported, "this domain tells no limits").At(n.name, "quota")
		}
		return nil, err
	}
	return []providers.Quota{
		{Name: "concurrent sandboxes", Unit: "sandboxes", Used: w.Usage.Instances, Limit: w.Limit.Instances},
		{Name: "cpu", Unit: "cores", Used: w.Usage.VCPU, Limit: w.Limit.VCPU},
		{Name: "memory", Unit: "MiB", Used: w.Usage.RAM, Limit: w.Limit.RAM},
	}, nil
}
