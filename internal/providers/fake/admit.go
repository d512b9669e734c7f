package fake

import (
	"context"

	"sbx/internal/providers"
)

var _ providers.Admitter = (*Provider)(nil)

// OpAdmit is the question whether a sandbox may start.
const OpAdmit Op = "admit"

// Admit says yes; a Fault of OpAdmit says no.
func (p *Provider) Admit(ctx context.Context, _ int64) error {
	f, err := p.request(ctx, OpAdmit, "", 0)
	if err != nil {
		return err
	}
	return f.Err
}
