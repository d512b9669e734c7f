package identity

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// hexAddress spells an address as this machine's kernel does.
func hexAddress(address string, port uint16) string {
	raw := netip.MustParseAddr(address).AsSlice()
	var b strings.Builder
	for ; len(raw) > 0; raw = raw[4:] {
		fmt.Fprintf(&b, "%08X", binary.NativeEndian.Uint32(raw))
	}
	return fmt.Sprintf("%s:%04X", b.String(), port)
}

// tcpLine is one line of /proc/net/tcp or tcp6.
func tcpLine(remote, state, inode string) string {
	return "   0: 0100007F:1F90 " + remote + " " + state + " 00000000:00000000 00:00000000 00000000  1000        0 " +
		inode + " 1 0000000000000000 20 4 30 10 -1\n"
}

const tcpHeading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

func TestParseConnection(t *testing.T) {
	t.Parallel()
	remote := hexAddress("127.0.0.1", 443)
	for name, tc := range map[string]struct {
		line string
		want string
	}{
		"established":   {tcpLine(remote, "01", "77"), "127.0.0.1:443"},
		"connecting":    {tcpLine(remote, "02", "77"), "127.0.0.1:443"},
		"listening":     {tcpLine(remote, "0A", "77"), ""},
		"close wait":    {tcpLine(remote, "08", "77"), ""},
		"no socket":     {tcpLine(remote, "01", "0"), ""},
		"heading":       {tcpHeading, ""},
		"torn":          {tcpLine(remote, "01", "77")[:60], ""},
		"empty":         {"", ""},
		"bad inode":     {tcpLine(remote, "01", "x"), ""},
		"bad address":   {tcpLine("0100007G:01BB", "01", "77"), ""},
		"short address": {tcpLine("01007F:01BB", "01", "77"), ""},
		"no port":       {tcpLine("0100007F", "01", "77"), ""},
		"wide port":     {tcpLine("0100007F:101BB", "01", "77"), ""},
		"v6":            {tcpLine(hexAddress("2001:db8::7", 8080), "01", "77"), "[2001:db8::7]:8080"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, ok := parseConnection([]byte(tc.line))
			assert.Equal(t, tc.want != "", ok)
			if ok {
				assert.Equal(t, connection{inode: 77, peer: tc.want}, c)
			}
		})
	}
}

func TestPeers(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1":               "127.0.0.1:443",
		"255.0.10.1":              "255.0.10.1:443",
		"::":                      "[::]:443",
		"::1":                     "[::1]:443",
		"1::":                     "[1::]:443",
		"::ffff:10.0.0.1":         "10.0.0.1:443",
		"1:0:0:2:0:0:0:3":         "[1:0:0:2::3]:443",
		"1:0:0:2:3:0:0:4":         "[1::2:3:0:0:4]:443",
		"1:0:2:3:4:5:6:7":         "[1:0:2:3:4:5:6:7]:443",
		"fe80:1:2:3:4:5:6:abcd":   "[fe80:1:2:3:4:5:6:abcd]:443",
		"0:0:1:2:3:4:5:6":         "[::1:2:3:4:5:6]:443",
		"1:2:3:4:5:6:0:0":         "[1:2:3:4:5:6::]:443",
		"2001:db8:0:0:1:0:0:beef": "[2001:db8::1:0:0:beef]:443",
	} {
		got, ok := parsePeer(hexAddress(address, 443))
		assert.True(t, ok)
		assert.Equal(t, want, got)
	}
}

// FuzzParseConnection feeds anything: no panic, and no name without a socket.
func FuzzParseConnection(f *testing.F) {
	f.Add([]byte(tcpLine("0100007F:01BB", "01", "77")))
	f.Add([]byte(tcpHeading))
	f.Fuzz(func(t *testing.T, line []byte) {
		if c, ok := parseConnection(line); ok {
			assert.NotZero(t, c.inode)
			assert.Contains(t, c.peer, ":")
		}
	})
}
