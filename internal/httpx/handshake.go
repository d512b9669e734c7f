package httpx

import "net/http"

// HTTP is a client for protocols that begin as a request (WebSocket). Each of its requests keeps to the pace of the
// API and is traced, and its answer counts for the pace and the clock of the server, as those of Do. Dialer,
// certificates and redirect rules are the same. It repeats nothing, and adds no header but the User-Agent.
func (c *Client) HTTP() *http.Client {
	return &http.Client{Transport: handshakes{c}, CheckRedirect: c.http.CheckRedirect}
}

// handshakes sends requests whose answers may become connections.
type handshakes struct{ c *Client }

func (h handshakes) RoundTrip(req *http.Request) (*http.Response, error) {
	c := h.c
	if err := c.waitForPace(req.Context(), Request{Op: "open"}); err != nil {
		return nil, err
	}
	if c.net.Agent != "" && req.Header.Get("User-Agent") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("User-Agent", c.net.Agent)
	}
	tell := c.traceRequest(req)
	res, err := c.http.Transport.RoundTrip(req)
	if err != nil {
		tell(0, 0, err)
		return nil, err
	}
	c.skew.record(c.net.Now(), res.Header)
	c.pace.recordStatus(res.StatusCode)
	tell(res.StatusCode, res.ContentLength, nil) // of a connection the length is not known
	return res, nil
}
