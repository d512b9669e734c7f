package publish

import (
	"context"
	"os"
	"strings"

	"sbx/internal/fault"
)

// scratch is a bare repository for one question to one remote. It is removed
// with all that came into it.
type scratch struct {
	git    *Git
	dir    string
	format string   // sha1 or sha256
	asked  string   // the remote as the target names it, without credentials
	remote string   // the same after the operator's rewriting of URLs, again without
	env    []string // how ssh is called
	given  credentials
}

// open makes a scratch repository for one remote. Its caller closes it.
func (g *Git) open(ctx context.Context, t Target) (*scratch, error) {
	if err := t.valid(); err != nil {
		return nil, err
	}
	if placeOf(t.Remote) == named {
		return nil, fault.Usage("publish target: %q is the name of a remote, not an address", t.Remote).WithHint("write ./%s for a folder", t.Remote)
	}
	dir, err := os.MkdirTemp(g.Dir, "sbx-publish-")
	if err != nil {
		return nil, fault.New(fault.KindUnknown, "publish: no scratch folder: %w", err)
	}
	remote, given := splitCredentials(t.Remote)
	s := &scratch{git: g, dir: dir, asked: remote, given: given}
	if err := s.prepare(ctx, sha1Format); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *scratch) close() { _ = os.RemoveAll(s.dir) } // what cannot be removed lies in the folder for temporary files

func (s *scratch) prepare(ctx context.Context, format string) error {
	s.format = format
	if _, err := s.local(ctx, "", "init", "--quiet", "--bare", "--template=", "--object-format="+format, "."); err != nil {
		return err
	}
	if err := s.quietSSH(ctx); err != nil {
		return err
	}
	return s.pushAddress(ctx)
}

// quietSSH keeps ssh from asking, unless the operator says how ssh is called.
func (s *scratch) quietSSH(ctx context.Context) error {
	_, command := lookup(s.git.Environ, "GIT_SSH_COMMAND")
	_, program := lookup(s.git.Environ, "GIT_SSH")
	if command || program {
		return nil
	}
	p, err := s.git.run(ctx, call{dir: s.dir, args: []string{"config", "--get", "core.sshCommand"}})
	if err == nil && p.code != 0 {
		s.env = []string{"GIT_SSH_COMMAND=ssh -o BatchMode=yes"}
	}
	return err
}

// pushAddress applies the operator's url.*.insteadOf and pushInsteadOf once, so
// that what is asked and what is pushed to is the same repository: a mirror that
// answers reads late must not decide a race. Credentials that the rewriting puts in
// are taken out again: they go the way of those of the target.
func (s *scratch) pushAddress(ctx context.Context) error {
	if _, err := s.local(ctx, "", "config", "remote.target.url", s.asked); err != nil {
		return err
	}
	out, err := s.local(ctx, "", "remote", "get-url", "--push", "target")
	address, _, ok := strings.Cut(out, "\n")
	if err != nil || !ok {
		return err
	}
	remote, given := splitCredentials(address)
	if given == (credentials{}) {
		s.remote = address
		return nil
	}
	s.given = given
	return s.pin(ctx, remote)
}

// pin makes an address without credentials the remote, and keeps git from
// rewriting it once more, which would put them back: the longest rule wins, and one
// of the operator's ends before the slash, which for http changes nothing.
func (s *scratch) pin(ctx context.Context, remote string) error {
	s.remote = strings.TrimSuffix(remote, "/") + "/"
	for _, rule := range []string{".insteadOf", ".pushInsteadOf"} {
		if _, err := s.local(ctx, "", "config", "url."+s.remote+rule, s.remote); err != nil {
			return err
		}
	}
	return nil
}

// local runs git without the remote and gives its output; that it fails is a
// fault of the host.
func (s *scratch) local(ctx context.Context, stdin string, args ...string) (string, error) {
	p, err := s.git.run(ctx, call{dir: s.dir, args: args, stdin: strings.NewReader(stdin)})
	switch {
	case err != nil:
		return "", err
	case p.cut:
		return "", fault.New(fault.KindUnavailable, "git %s was cut short", args[0])
	case p.code != 0:
		return "", fault.New(fault.KindUnknown, "git %s: %s", args[0], s.said(p))
	}
	return p.out, nil
}

// far runs git against the remote, with the credentials in its environment.
func (s *scratch) far(ctx context.Context, args ...string) (printed, error) {
	config, env := s.given.handed()
	return s.git.run(ctx, call{dir: s.dir, args: args, env: append(env, s.env...), config: config})
}
