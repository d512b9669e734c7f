package kubernetes

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
)

// missingRight finds the words of a 403 for a missing right (k8s.io/apiserver, responsewriters.Forbidden).
func missingRight() *regexp.Regexp { return regexp.MustCompile(`forbidden: User ".*" cannot `) }

// admission is the error of a request that a rule of the cluster refuses, such as a quota or a webhook: the API answers
// it with 403 as it does for a missing right. Other errors stay as they are.
func (c *Client) admission(err error) error {
	if s := httpx.StatusOf(err); s != nil && byRule(s.Status, s.Code, s.Message) {
		return fault.New(fault.KindRefused, "%w", err).WithHint("%s", c.refusalHint(s.Message))
	}
	return err
}

// deniedByRule finds the words of a webhook and of a policy, which choose the status themselves: 422 is the default of
// the second.
func deniedByRule() *regexp.Regexp {
	return regexp.MustCompile(`(admission webhook|ValidatingAdmissionPolicy) .* denied (the )?request`)
}

// byRule says that an error answer is that of a rule; reason is that of the API server, and a 403 without one may be
// that of a gateway in front of it. The check of an upgrade names no right (kube-apiserver 1.36).
func byRule(status int, reason, message string) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return deniedByRule().MatchString(message)
	case http.StatusForbidden:
		return deniedByRule().MatchString(message) ||
			reason == "Forbidden" && message != "" && !missingRight().MatchString(message) && !strings.HasSuffix(message, "is forbidden: ")
	}
	return false
}

const (
	// roleNotFound is part of a 403 of an API server that has not read its roles yet: it does so in the first seconds
	// after its start, and answers meanwhile.
	roleNotFound = ".rbac.authorization.k8s.io \""
	// startsWithin is how long after a call that worked such an answer is that of a server which starts.
	startsWithin = time.Minute
)

// isPassing says that an API server which has just started refuses what the account may do.
func (c *Client) isPassing(status int, message string) bool {
	starts := status == http.StatusForbidden && strings.Contains(message, roleNotFound) && strings.Contains(message, "not found")
	worked := c.API.WorkedAt()
	return starts && !worked.IsZero() && c.Now().Sub(worked) < startsWithin
}

// refusalHint is what to do about a refusal, by the words of the API server's own admission plugins.
func (c *Client) refusalHint(said string) string {
	switch {
	case strings.Contains(said, "exceeded quota"):
		return "end something, or ask for less: `sbx doctor --provider " + c.Profile + "` shows the quotas"
	case strings.Contains(said, "must specify limits"):
		return "set the limits that it names: --memory, --cpu or --disk"
	case strings.Contains(said, "it is being terminated"):
		return "the namespace " + c.at.namespace + " is being deleted: set another `namespace` in the profile"
	}
	return "an admission rule of the cluster refuses it, not the lack of a right"
}

// podRefusal is why the API refuses the pod of an object that has none for this time; "" where nothing is known. A
// sandbox has it in its condition, a job in its events alone.
func (c *Client) podRefusal(ctx context.Context, o object, since time.Duration) string {
	if len(o.pods) > 0 || since < refusedLimit {
		return ""
	}
	if ready := o.condition("Ready"); ready.Reason == "ReconcilerError" {
		return strings.TrimPrefix(ready.Message, "Error seen: ")
	}
	last := wireEvent{}
	_ = c.eachEvent(ctx, "create", o.Metadata.UID, func(e wireEvent) bool { // without the right to read them the create goes on
		if e.Reason == "FailedCreate" && !e.at().Before(last.at()) {
			last = e
		}
		return true
	})
	return strings.TrimPrefix(last.Message, "Error creating: ")
}
