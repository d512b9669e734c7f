package kubernetes

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientauth "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"sbx/internal/fault"
	"sbx/internal/providers"
)

// plugin is the program of `users[].user.exec` of a kubeconfig, which prints an ExecCredential. client-go would run it
// without a limit in time and with the terminal as its stderr, and would leave it behind; a run ends here with the
// request that needs it.
type plugin struct {
	exec    *api.ExecConfig
	env     []string // KEY=VALUE
	run     providers.Runner
	now     func() time.Time
	at      *target
	next    http.RoundTripper
	turn    chan struct{}               // one run at a time
	current atomic.Pointer[credentials] // nil before the first run and after one that failed
	failed  failure                     // of the last run; held with turn
}

// credentials are what one run has printed.
type credentials struct {
	token       string
	certificate *tls.Certificate // nil = none
	until       time.Time        // zero = not known
}

type failure struct {
	at  time.Time
	err error
}

// takePlugin takes the program out of the config; nil for none, and beside other credentials, which win in client-go.
func (t *target) takePlugin(config *rest.Config, d providers.Deps) (*plugin, error) {
	e := config.ExecProvider
	if e == nil || config.BearerToken+config.BearerTokenFile+config.Username+config.CertFile+string(config.CertData) != "" {
		return nil, nil //nolint:nilnil // most kubeconfigs have none
	}
	if e.InteractiveMode == api.AlwaysExecInteractiveMode {
		return nil, fault.New(
			fault.KindAuth, "%s of users.exec needs a terminal, which sbx does not give it", e.Command,
		).WithHint("log in with it first, and set its interactiveMode to IfAvailable")
	}
	question := clientauth.ExecCredential{TypeMeta: metav1.TypeMeta{Kind: "ExecCredential", APIVersion: e.APIVersion}}
	if e.ProvideClusterInfo {
		cluster, err := rest.ConfigToExecCluster(config)
		if err == nil {
			question.Spec.Cluster = &clientauth.Cluster{}
			err = clientauth.Convert_clientauthentication_Cluster_To_v1_Cluster(cluster, question.Spec.Cluster, nil)
		}
		if err != nil {
			return nil, fault.Usage("users.exec: %w", err)
		}
	}
	config.ExecProvider = nil
	info, err := json.Marshal(question)
	p := &plugin{exec: e, run: d.Run, now: d.Now, at: t, turn: make(chan struct{}, 1)}
	if p.now == nil {
		p.now = time.Now
	}
	for _, v := range e.Env {
		p.env = append(p.env, v.Name+"="+v.Value)
	}
	p.env = append(p.env, "KUBERNETES_EXEC_INFO="+string(info))
	return p, err
}

// certificate is asked for in handshakes, which follow the run whose certificate it is.
func (p *plugin) certificate() (*tls.Certificate, error) {
	if c := p.current.Load(); c != nil {
		return c.certificate, nil
	}
	return nil, nil //nolint:nilnil // none
}

// RoundTrip sends a request. One that is refused with 401 had no effect: it is sent again with new credentials.
func (p *plugin) RoundTrip(r *http.Request) (*http.Response, error) {
	c, err := p.credentials(r.Context(), nil)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	res, err := p.next.RoundTrip(c.on(r))
	if err != nil || res.StatusCode != http.StatusUnauthorized || r.Body != nil && r.GetBody == nil {
		return res, err
	}
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return res, nil //nolint:nilerr // the refusal says more
		}
	}
	_ = res.Body.Close()
	if c, err = p.credentials(r.Context(), c); err != nil {
		return nil, err
	}
	return p.next.RoundTrip(c.on(again))
}

func (c *credentials) on(r *http.Request) *http.Request {
	if c.token == "" {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+c.token)
	return r
}

// credentials are the credentials of the last run, or of a new one where these have expired or were refused. A failure is shared
// by all that waited for it.
func (p *plugin) credentials(ctx context.Context, refused *credentials) (*credentials, error) {
	began := p.now()
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
	}
	known := p.current.Load()
	switch {
	case ctx.Err() != nil:
		return nil, p.fault(context.Cause(ctx), "")
	case known != nil && known != refused && (known.until.IsZero() || p.now().Before(known.until)):
		return known, nil
	case p.failed.err != nil && p.failed.at.After(began):
		return nil, p.failed.err
	}
	out, said, err := p.run(ctx, p.env, p.exec.Command, p.exec.Args...)
	c, unread := p.parseCredentials(out)
	if err = cmp.Or(err, unread); err != nil {
		c, err = nil, p.fault(err, said)
	}
	p.current.Store(c)
	p.failed = failure{p.now(), err}
	if ctx.Err() != nil {
		p.failed = failure{} // of this request alone
	}
	p.CloseIdleConnections() // they may have another certificate
	return c, err
}

// parseCredentials reads the ExecCredential that a run has printed. The errors have nothing of the text.
func (p *plugin) parseCredentials(out string) (*credentials, error) {
	var w clientauth.ExecCredential
	if json.Unmarshal([]byte(out), &w) != nil || w.Kind != "ExecCredential" || w.Status == nil {
		return nil, errors.New("it prints no ExecCredential with a status")
	}
	for _, secret := range []string{w.Status.Token, w.Status.ClientKeyData} {
		p.at.api.Hide(secret)
	}
	c := &credentials{token: w.Status.Token}
	if w.Status.ExpirationTimestamp != nil {
		c.until = w.Status.ExpirationTimestamp.Time
	}
	if w.Status.ClientCertificateData != "" || w.Status.ClientKeyData != "" {
		pair, err := tls.X509KeyPair([]byte(w.Status.ClientCertificateData), []byte(w.Status.ClientKeyData))
		if err != nil {
			return nil, errors.New("its certificate and key are no pair")
		}
		c.certificate = &pair
	}
	switch {
	case w.APIVersion != p.exec.APIVersion:
		return nil, errors.New("it prints another version than " + p.exec.APIVersion + " of the kubeconfig")
	case c.token == "" && c.certificate == nil:
		return nil, errors.New("it prints neither a token nor a certificate")
	}
	return c, nil
}

// fault says why there are no credentials, with the last line that the program has printed on stderr.
func (p *plugin) fault(err error, said string) error {
	said = strings.TrimSpace(said)
	if said = p.at.api.Clean(said[strings.LastIndexByte(said, '\n')+1:]); said != "" {
		said = ": " + said
	}
	return fault.New(fault.KindAuth, "%s of users.exec gives no credentials: %w%s", p.exec.Command, err, said).
		WithHint("run it by hand, or log in with it again")
}

// CloseIdleConnections is called by http.Client.
func (p *plugin) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(p.next) }
