package identity

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"
)

// The TCP states in which a program waits for its peer, as spelled in /proc/net/tcp.
const (
	tcpEstablished = "01"
	tcpSynSent     = "02"
)

// connection is one line of /proc/net/tcp or tcp6 that a program may wait for.
type connection struct {
	inode uint64
	peer  string // "127.0.0.1:443", "[::1]:443"
}

// parseConnection reads one line of /proc/net/tcp or tcp6; false for other states, the
// heading and malformed lines.
func parseConnection(line []byte) (connection, bool) {
	const remote, state, inode, fields = 2, 3, 9, 10
	var field [fields][]byte
	n := 0
	for f := range bytes.FieldsSeq(line) {
		if field[n] = f; n == inode {
			break
		}
		n++
	}
	if n != inode || (string(field[state]) != tcpEstablished && string(field[state]) != tcpSynSent) {
		return connection{}, false
	}
	number, err := strconv.ParseUint(string(field[inode]), 10, 64)
	peer, ok := parsePeer(string(field[remote]))
	return connection{inode: number, peer: peer}, ok && err == nil && number != 0
}

// parsePeer turns 0100007F:01BB into 127.0.0.1:443. The address consists of 32-bit words in
// the byte order of the machine.
func parsePeer(text string) (string, bool) {
	address, portText, ok := strings.Cut(text, ":")
	port, err := strconv.ParseUint(portText, 16, 16)
	if !ok || err != nil || (len(address) != 8 && len(address) != 32) {
		return "", false
	}
	raw := make([]byte, 0, 16)
	for ; address != ""; address = address[8:] {
		word, err := strconv.ParseUint(address[:8], 16, 32)
		if err != nil {
			return "", false
		}
		raw = binary.NativeEndian.AppendUint32(raw, uint32(word))
	}
	ip, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip.Unmap(), uint16(port)).String(), ok
}
