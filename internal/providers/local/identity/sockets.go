package identity

import (
	"bytes"
	"encoding/binary"
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
	address, port, ok := strings.Cut(text, ":")
	number, err := strconv.ParseUint(port, 16, 16)
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
	return formatIP(raw) + ":" + strconv.FormatUint(number, 10), true
}

// formatIP formats an address of 4 or 16 bytes. net and net/netip would run code at init.
func formatIP(raw []byte) string {
	if len(raw) == 16 && bytes.Equal(raw[:12], []byte{10: 0xff, 11: 0xff}) {
		raw = raw[12:] // IPv4 inside IPv6
	}
	if len(raw) == 4 {
		parts := make([]string, len(raw))
		for i, b := range raw {
			parts[i] = strconv.Itoa(int(b))
		}
		return strings.Join(parts, ".")
	}
	return "[" + formatIPv6(raw) + "]"
}

// formatIPv6 follows RFC 5952: the first longest run of two or more zero groups becomes "::".
func formatIPv6(raw []byte) string {
	from, to := longestZeros(raw)
	var b strings.Builder
	for i := 0; i < 8; i++ {
		if i == from {
			b.WriteString("::")
			i = to - 1
			continue
		}
		if i > 0 && i != to {
			b.WriteByte(':')
		}
		b.WriteString(strconv.FormatUint(uint64(binary.BigEndian.Uint16(raw[2*i:])), 16))
	}
	return b.String()
}

// longestZeros finds the groups [from, to) to shorten; -1, -1 without any.
func longestZeros(raw []byte) (from, to int) {
	from, to = -1, -1
	for i := 0; i < 8; i++ {
		end := i
		for end < 8 && raw[2*end] == 0 && raw[2*end+1] == 0 {
			end++
		}
		if end-i >= 2 && end-i > to-from {
			from, to = i, end
		}
		i = max(i, end)
	}
	return from, to
}
