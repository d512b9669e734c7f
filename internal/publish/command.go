package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

const commandGrace = 5 * time.Second

// Command is the operator's own way to publish: a shell line that is run on this host,
// after the gate.
type Command struct {
	Line   string // for sh -c
	Task   string // SBX_TASK: an idempotency key
	Fence  int64  // SBX_FENCE: a token that only grows
	Bundle string // SBX_BUNDLE: path of the work as a git bundle, or ""
	Dir    string
	Env    []string      // the base environment, KEY=value
	Stdout io.Writer     // nil = discarded; write errors are ignored
	Stderr io.Writer     // likewise
	Grace  time.Duration // between TERM and KILL; 0 = 5 s
}

// Run runs the line to its end and returns its exit; a code other than 0 is no error. The
// end of ctx sends TERM to the whole process group and KILL after Grace. The error is then
// ctx's cause, and the effect of the line is unknown. Processes that it leaves in its group
// are killed.
func (c Command) Run(ctx context.Context) (sandbox.Exit, error) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return sandbox.Exit{}, fault.New(fault.KindLauncher, "publish command: %w", err).WithHint("sbx needs a POSIX sh on this host for --publish")
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), shell, "-c", c.Line) // runGroup ends it: the whole group, TERM first
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, ignoringErrors(c.Stdout), ignoringErrors(c.Stderr)
	cmd.Env = withEnv(c.Env, "SBX_TASK="+c.Task, "SBX_FENCE="+strconv.FormatInt(c.Fence, 10), "SBX_BUNDLE="+c.Bundle)
	grace := c.Grace
	if grace <= 0 {
		grace = commandGrace
	}
	err = runGroup(ctx, cmd, grace)
	return commandExit(cmd, err)
}

func commandExit(cmd *exec.Cmd, err error) (sandbox.Exit, error) {
	if cmd.ProcessState == nil {
		return sandbox.Exit{}, fmt.Errorf("publish command: %w", err)
	}
	exit := exitOf(cmd.ProcessState)
	var code *exec.ExitError
	if err == nil || errors.As(err, &code) {
		return exit, nil
	}
	return exit, fmt.Errorf("publish command: %w", err)
}

// errorIgnorer is a writer that never fails: a full disk or a closed terminal must not end
// the line, and says nothing about its effect.
type errorIgnorer struct{ w io.Writer }

func (h errorIgnorer) Write(b []byte) (int, error) {
	_, _ = h.w.Write(b)
	return len(b), nil
}

// ignoringErrors keeps nil, and equal writers equal: exec then copies nothing, or both
// streams in order.
func ignoringErrors(w io.Writer) io.Writer {
	if w == nil {
		return nil
	}
	return errorIgnorer{w}
}

// gitEnvironment is the part of the operator's environment that git needs, without what
// binds it to a repository or makes it print more, and with settings that prevent prompts.
// Git passes it to hooks and helpers, which are foreign programs.
func (g *Git) gitEnvironment(c gitCall) []string {
	env := make([]string, 0, len(g.Environ)+len(c.env)+8)
	for _, kv := range g.Environ {
		if key, _, _ := strings.Cut(kv, "="); isNeededVariable(key) && !isUnwantedVariable(key) {
			env = append(env, kv)
		}
	}
	env = withEnv(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GCM_INTERACTIVE=never", "SSH_ASKPASS_REQUIRE=never",
		"GIT_ALLOW_PROTOCOL=file:git:http:https:ssh")
	return withConfig(withEnv(env, c.env...), c.config)
}

// isNeededVariable selects the variables of git, ssh, the transports and the credential
// helpers of code hosts: user, locale, proxies, certificates, agents and tokens of code
// hosts. Those of clouds and sandbox providers are not among them.
func isNeededVariable(key string) bool {
	switch key {
	case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TMP", "TEMP", "TZ", "LANG", "LANGUAGE", "TERM",
		"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DBUS_SESSION_BUS_ADDRESS", "GNUPGHOME", "GPG_AGENT_INFO", "KRB5CCNAME", "KRB5_CONFIG",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "CURL_HOME", "GITHUB_TOKEN", "GITLAB_TOKEN", "GITLAB_HOST":
		return true
	}
	switch strings.ToLower(key) {
	case "http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy":
		return true
	}
	for _, prefix := range []string{"LC_", "SSH_", "GIT_", "XDG_", "GCM_", "GH_"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// isUnwantedVariable selects the variables that bind git to another repository (git
// rev-parse --local-env-vars), print secrets, or open a prompt.
func isUnwantedVariable(key string) bool {
	switch key {
	case "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
		"GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_QUARANTINE_PATH", "GIT_IMPLICIT_WORK_TREE",
		"GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS",
		"GIT_CURL_VERBOSE", "SSH_ASKPASS", "GIT_PUSH_OPTION_COUNT", "GIT_DEFAULT_HASH", "GIT_PROTOCOL":
		return true
	}
	return strings.HasPrefix(key, "GIT_TRACE")
}

// withConfig adds secret settings, "key=value", to the environment, where other users
// cannot read them, unlike in arguments.
func withConfig(env, config []string) []string {
	if len(config) == 0 {
		return env
	}
	count, _ := lookUpEnv(env, "GIT_CONFIG_COUNT")
	n, _ := strconv.Atoi(count)
	for i, kv := range config {
		key, value, _ := strings.Cut(kv, "=")
		index := strconv.Itoa(n + i)
		env = withEnv(env, "GIT_CONFIG_KEY_"+index+"="+key, "GIT_CONFIG_VALUE_"+index+"="+value)
	}
	return withEnv(env, "GIT_CONFIG_COUNT="+strconv.Itoa(n+len(config)))
}

// withEnv returns a copy of env in which each of sets replaces the earlier value.
func withEnv(env []string, sets ...string) []string {
	result := make([]string, 0, len(env)+len(sets))
	for _, kv := range env {
		key, _, _ := strings.Cut(kv, "=")
		if _, replaced := lookUpEnv(sets, key); !replaced {
			result = append(result, kv)
		}
	}
	return append(result, sets...)
}

func lookUpEnv(env []string, key string) (string, bool) {
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, key+"="); ok {
			return value, true
		}
	}
	return "", false
}
