package docker

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	dockercontext "github.com/docker/cli/cli/context"
	contextdocker "github.com/docker/cli/cli/context/docker"
	"github.com/docker/cli/cli/context/store"
	"github.com/moby/moby/client"

	"sbx/internal/fault"
)

// defaultContext is the context of the engine of this machine, which no file describes.
const defaultContext = "default"

// endpoint is where an engine listens.
type endpoint struct {
	Host string // as in DOCKER_HOST: unix:///var/run/docker.sock, tcp://host:2376, ssh://user@host
	From string // what named it, for errors
	Dial func(ctx context.Context) (net.Conn, error)
}

// findEndpoint finds the engine as Docker's own program does: a host before a context, and without both the
// current context of its configuration. Certificates, pipes and ssh are the business of Docker's own packages.
func findEndpoint(settings map[string]string, lookup func(string) (string, bool)) (endpoint, error) {
	f := contextFiles{dir: configFolder(lookup)}
	switch name, err := f.current(settings); {
	case settings["host"] != "":
		tls, err := certificates(settings)
		if err != nil {
			return endpoint{}, err
		}
		return openEndpoint("the setting host", contextdocker.Endpoint{
			EndpointMeta: contextdocker.EndpointMeta{Host: settings["host"], SkipTLSVerify: tls != nil && settings["tls_verify"] == ""}, TLSData: tls,
		})
	case err != nil:
		return endpoint{}, err
	case name == defaultContext:
		return openEndpoint("the default context", contextdocker.Endpoint{EndpointMeta: contextdocker.EndpointMeta{Host: client.DefaultDockerHost}})
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
type contextFiles struct{ dir string }

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
		return "", fault.Usage("the configuration of Docker cannot be read: %w", err).WithHint("set host or context in the profile, or DOCKER_HOST")
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
		store.EndpointTypeGetter(contextdocker.DockerEndpoint, func() any { return &contextdocker.EndpointMeta{} })))
	meta, err := files.GetMetadata(name)
	if err != nil {
		return endpoint{}, fault.Usage("the context %q of Docker cannot be read: %w", name, err).WithHint("`docker context ls` shows those that exist")
	}
	described, err := contextdocker.EndpointFromContext(meta)
	if err != nil {
		return endpoint{}, fault.Usage("the context %q of Docker is of no engine: %w", name, err).WithHint("`docker context ls` shows those that exist")
	}
	full, err := contextdocker.WithTLSData(files, name, described)
	if err != nil {
		return endpoint{}, fault.Usage("the certificates of the context %q cannot be read: %w", name, err)
	}
	return openEndpoint("the context "+name, full)
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
func openEndpoint(from string, e contextdocker.Endpoint) (endpoint, error) {
	options, err := e.ClientOpts()
	if err != nil {
		return endpoint{}, fault.Usage("%s: %w", from, err).WithHint("write it like unix:///var/run/docker.sock, tcp://host:2376 or ssh://user@host")
	}
	opened, err := client.New(options...)
	if err != nil {
		return endpoint{}, fault.Usage("%s: %w", from, err).WithHint("write it like unix:///var/run/docker.sock, tcp://host:2376 or ssh://user@host")
	}
	return endpoint{Host: e.Host, From: from, Dial: opened.Dialer()}, nil
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
