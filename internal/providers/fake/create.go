package fake

import (
	"context"
	"maps"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

var _ providers.Launcher = (*Provider)(nil)

// Create makes a sandbox that runs spec.Command; see Exec for what the fake
// can run. A program whose name begins with "no-such-" is not there.
func (p *Provider) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	f, err := p.request(ctx, OpCreate, "", 0)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	if spec.RequireHardLimit {
		return sandbox.Sandbox{}, p.refuse(fault.KindRefused, OpCreate, "", "a sandbox in memory has no hard limit")
	}
	if len(spec.Command) > 0 && strings.HasPrefix(spec.Command[0], "no-such-") {
		return sandbox.Sandbox{}, p.refuse(fault.KindCommandNotFound, OpCreate, "", "%q was not found", spec.Command[0])
	}
	program := compile(spec.Command, spec.Env)
	if p.o.Program != nil {
		if s, ok := p.o.Program(spec); ok {
			program = s.program()
		}
	}
	made := p.make(spec, program)
	if err := p.answer(ctx, f, OpCreate, ""); err != nil {
		return sandbox.Sandbox{}, err
	}
	return made, nil
}

func (p *Provider) make(spec sandbox.Spec, program program) sandbox.Sandbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.build(spec, program)
	p.put(b)
	p.broadcast()
	return p.dressed(b, p.o.Now())
}

func (p *Provider) build(spec sandbox.Spec, program program) *box {
	now := p.o.Now()
	b := &box{
		program: program,
		linger:  spec.Linger && !p.lied(LieEndsWithProgram),
		listed:  now.Add(p.o.ListLag),
		ready:   now.Add(p.o.ProvisionFor),
		endFor:  p.o.EndFor,
		env:     slices.Clone(spec.Env),
		s: sandbox.Sandbox{
			Name: spec.Name, State: sandbox.StateRunning, CreatedAt: now, Activity: sandbox.Unknown,
			Template: spec.Template, AgentType: spec.AgentType, TaskID: spec.TaskID, Labels: maps.Clone(spec.Labels),
			Limits: limits(spec),
		},
	}
	if spec.TTL > 0 {
		b.s.ExpiresAt, b.enforced = now.Add(spec.TTL), true
	}
	if p.lied(LieOwnNonce) && b.s.Labels[sandbox.LabelNonce] != "" {
		b.s.Labels[sandbox.LabelNonce] = "made-here"
	}
	if p.lied(LieEmptyLabels) {
		b.s.Name, b.s.TaskID, b.s.Labels = "", "", nil
	}
	if p.lied(LieEnvInLogs) && len(spec.Env) > 0 {
		b.logs = append(b.logs, sandbox.LogLine{At: now, Stream: "stdout", Text: "started with " + spec.Env[0]})
	}
	return b
}

func limits(spec sandbox.Spec) sandbox.Limits {
	l := sandbox.Limits{
		MemoryBytes: positive(spec.MemoryBytes), CPU: positive(spec.CPU),
		DiskBytes: positive(spec.DiskBytes), PIDs: positive(spec.PIDs),
	}
	if l != (sandbox.Limits{}) {
		l.Enforcement = sandbox.EnforcementNone
	}
	return l
}

// positive is nil for "not said".
func positive[T int64 | float64](v T) *T {
	if v <= 0 {
		return nil
	}
	return &v
}
