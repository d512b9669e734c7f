package docker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/docker/cli/cli/connhelper/ssh"
	dockercontext "github.com/docker/cli/cli/context"
	"github.com/docker/cli/cli/context/store"
	"github.com/docker/go-connections/sockets"

	"sbx/internal/fault"
	"sbx/internal/providers"
)

const (
	// defaultContext is the context of the engine of this machine, which no file describes.
	defaultContext = "default"
	// engineOf names the endpoint of a context that is an engine.
	engineOf = "docker"
)

// defaultHost is where the engine of this machine listens.
func defaultHost() string {
	if runtime.GOOS == "windows" {
		return "npipe:////./pipe/docker_engine"
	}
	return "unix:///var/run/docker.sock"
}

// endpoint is where an engine listens.
type endpoint struct {
	Host string // as in DOCKER_HOST: unix:///var/run/docker.sock, tcp://host:2376, ssh://user@host
	From string // what named it, for errors
	Dial func(ctx context.Context) (net.Conn, error)
}

// findEndpoint finds the engine as Docker's own program does: a host before a context, and without both the
// current context of its configuration. Certificates, pipes and ssh are the business of Docker's own packages.
func findEndpoint(settings map[string]string, lookup func(string) (string, bool), connect providers.Connector) (endpoint, error) {
	f := contextFiles{dir: configFolder(lookup), connect: connect}
	switch name, err := f.current(settings); {
	case settings["host"] != "":
		data, err := certificates(settings)
		if err != nil {
			return endpoint{}, err
		}
		from := "the setting host"
		if said, _ := lookup("DOCKER_HOST"); said == settings["host"] { // a profile of a file does not read it
			from = "DOCKER_HOST"
		}
		return f.openEndpoint(from, dockercontext.EndpointMetaBase{Host: settings["host"], SkipTLSVerify: data != nil && settings["tls_verify"] == ""}, data)
	case err != nil:
		return endpoint{}, err
	case name == defaultContext:
		return f.openEndpoint("the default context", dockercontext.EndpointMetaBase{Host: defaultHost()}, nil)
	default:
		return f.open(name)
	}
}

// configFolder is the folder of Docker's own program; "" where none is known.
func configFolder(lookup func(string) (string, bool)) string {
	if dir, ok := lookup("DOCKER_CONFIG"); ok && dir != "" {
		return dir
	}
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home, ok := lookup(name); ok && home != "" {
			return filepath.Join(home, ".docker")
		}
	}
	return ""
}

// contextFiles are the contexts in the folder of Docker's own program.
type contextFiles struct {
	dir     string
	connect providers.Connector
}

// current is the context of the settings, or the current one of the configuration file.
func (f contextFiles) current(settings map[string]string) (string, error) {
	if name := settings["context"]; name != "" || f.dir == "" {
		return orDefault(name), nil
	}
	text, err := os.ReadFile(filepath.Join(f.dir, "config.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return defaultContext, nil
	}
	var file struct {
		CurrentContext string `json:"currentContext"` //nolint:tagliatelle // Docker's own
	}
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		return "", fault.Usage("the configuration of Docker cannot be read: %w", err).WithHint("set host or context in the profile")
	}
	return orDefault(file.CurrentContext), nil
}

func orDefault(name string) string {
	if name == "" {
		return defaultContext
	}
	return name
}

// open opens the engine of a context.
func (f contextFiles) open(name string) (endpoint, error) {
	files := store.New(filepath.Join(f.dir, "contexts"), store.NewConfig(func() any { return &map[string]any{} },
		store.EndpointTypeGetter(engineOf, func() any { return &dockercontext.EndpointMetaBase{} })))
	meta, err := files.GetMetadata(name)
	if err != nil {
		return endpoint{}, fault.Usage("the context %q of Docker cannot be read: %w", name, err).WithHint("`docker context ls` shows those that exist")
	}
	described, ok := meta.Endpoints[engineOf].(dockercontext.EndpointMetaBase)
	if !ok {
		return endpoint{}, fault.Usage("the context %q of Docker is of no engine", name).WithHint("`docker context ls` shows those that exist")
	}
	data, err := dockercontext.LoadTLSData(files, name, engineOf)
	if err != nil {
		return endpoint{}, fault.Usage("the certificates of the context %q cannot be read: %w", name, err)
	}
	return f.openEndpoint("the context "+name, described, data)
}

// certificates are those in the folder of the setting cert_path; nil without it.
func certificates(settings map[string]string) (*dockercontext.TLSData, error) {
	dir := settings["cert_path"]
	if dir == "" {
		return nil, nil //nolint:nilnil // there are none, which is no error
	}
	var data dockercontext.TLSData
	for name, into := range map[string]*[]byte{"ca.pem": &data.CA, "cert.pem": &data.Cert, "key.pem": &data.Key} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fault.Usage("cert_path: %w", err).WithHint("the folder needs ca.pem, cert.pem and key.pem")
		}
		*into = text
	}
	return &data, nil
}

// openEndpoint checks an address and makes its dialer. Nothing is connected.
func (f contextFiles) openEndpoint(from string, e dockercontext.EndpointMetaBase, data *dockercontext.TLSData) (endpoint, error) {
	dial, err := f.dialer(e, data)
	if err != nil {
		return endpoint{}, fault.Usage("%s: %w", from, err).WithHint("write it like unix:///var/run/docker.sock, tcp://host:2376 or ssh://user@host")
	}
	return endpoint{Host: e.Host, From: from, Dial: dial}, nil
}

// dialer is the dialer of Docker's packages for sockets and pipes, with TLS above it for another address that has certificates,
// and a program for ssh. Docker's own client would bring 0.5 ms of start along, and its TLS connects without a limit in time.
func (f contextFiles) dialer(e dockercontext.EndpointMetaBase, data *dockercontext.TLSData) (func(context.Context) (net.Conn, error), error) {
	if strings.HasPrefix(e.Host, "ssh://") {
		return f.sshDialer(e.Host)
	}
	network, address, _ := strings.Cut(e.Host, "://")
	if network == "tcp" {
		address, _, _ = strings.Cut(address, "/")
	}
	if address == "" {
		return nil, fmt.Errorf("%q is no address", e.Host)
	}
	var t http.Transport
	if err := sockets.ConfigureTransport(&t, network, address); err != nil {
		return nil, err
	}
	plain := func(ctx context.Context) (net.Conn, error) { return t.DialContext(ctx, network, address) }
	if network != "tcp" || data == nil && !e.SkipTLSVerify {
		return plain, nil
	}
	config, err := tlsConfig(address, e.SkipTLSVerify, data)
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := plain(ctx)
		if err != nil {
			return nil, err
		}
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return secure, nil
	}, err
}

// sshDialer runs Docker's own program at the other end, as Docker's program does. The connection helper of Docker waits
// for its end until every process that ssh has started has closed its streams.
func (f contextFiles) sshDialer(host string) (func(context.Context) (net.Conn, error), error) {
	spec, err := ssh.ParseURL(host)
	if err != nil {
		return nil, err
	}
	remote := []string{"docker", "system", "dial-stdio"}
	if strings.Trim(spec.Path, "/") != "" {
		remote = []string{"docker", "--host=unix://" + spec.Path, "system", "dial-stdio"}
	}
	args, err := spec.Command([]string{"-o ConnectTimeout=30", "-T"}, remote...)
	if err != nil {
		return nil, err
	}
	return func(context.Context) (net.Conn, error) { return f.connect("ssh", args...) }, nil
}

func tlsConfig(address string, skipVerify bool, data *dockercontext.TLSData) (*tls.Config, error) {
	host, _, err := net.SplitHostPort(address)
	config := &tls.Config{ServerName: host, InsecureSkipVerify: skipVerify, MinVersion: tls.VersionTLS12} //nolint:gosec // as the context or the profile says
	if err != nil || data == nil {
		return config, err
	}
	if data.CA != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data.CA) {
			return nil, errors.New("ca.pem has no certificate")
		}
	}
	if data.Cert == nil || data.Key == nil {
		return config, nil
	}
	pair, err := tls.X509KeyPair(data.Cert, data.Key)
	if err != nil {
		return nil, fmt.Errorf("cert.pem and key.pem: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// base is the address of requests: the dialer ignores its host, which only names the engine in texts.
func (e endpoint) base() string {
	scheme, address, _ := strings.Cut(e.Host, "://")
	if scheme != "tcp" && scheme != "ssh" {
		return "http://" + scheme + "-socket"
	}
	host, _, _ := strings.Cut(address, "/")
	return "http://" + host[strings.LastIndexByte(host, '@')+1:]
}
