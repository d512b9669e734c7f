package identity

import (
	"fmt"
	"maps"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sbx/internal/testkit/tiertest"
)

// call is the syscall file of a thread that is blocked.
func call(number, first int) string {
	return fmt.Sprintf("%d 0x%x 0x1 0x2 0x3 0x4 0x5 0x7ffd 0x7f00\n", number, first)
}

// connected is a process with two connections (5 and 8), a listener (4), a file
// (3) and an epoll set (6) over the second connection.
func connected(threads map[string]string) map[string]string {
	files := map[string]string{
		"7/fd/3":     "->/etc/passwd",
		"7/fd/4":     "->socket:[40]",
		"7/fd/5":     "->socket:[50]",
		"7/fd/6":     "->anon_inode:[eventpoll]",
		"7/fd/8":     "->socket:[80]",
		"7/fdinfo/6": "pos:\t0\nflags:\t02\ntfd:        8 events:       19 data: 0\ntfd:        3 events:       19\ntfd:\n",
		"7/net/tcp":  tcpHeading + tcpLine("00000000:0000", "0A", "40") + tcpLine(hexAddress("127.0.0.1", 443), "01", "50"),
		"7/net/tcp6": tcpHeading + tcpLine(hexAddress("::1", 8443), "01", "80"),
	}
	maps.Copy(files, threads)
	return files
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	const first, second = "tcp 127.0.0.1:443", "tcp [::1]:8443"
	for name, tc := range map[string]struct {
		threads map[string]string
		want    string
	}{
		"read":              {map[string]string{"7/task/7/syscall": call(unix.SYS_READ, 5)}, first},
		"recvfrom, v6":      {map[string]string{"7/task/7/syscall": call(unix.SYS_RECVFROM, 8)}, second},
		"recvmsg":           {map[string]string{"7/task/7/syscall": call(unix.SYS_RECVMSG, 5)}, first},
		"connect":           {map[string]string{"7/task/7/syscall": call(unix.SYS_CONNECT, 5)}, first},
		"read of a file":    {map[string]string{"7/task/7/syscall": call(unix.SYS_READ, 3)}, ""},
		"read of listener":  {map[string]string{"7/task/7/syscall": call(unix.SYS_READ, 4)}, ""},
		"sleep":             {map[string]string{"7/task/7/syscall": call(unix.SYS_CLOCK_NANOSLEEP, 5)}, ""},
		"epoll":             {map[string]string{"7/task/7/syscall": call(unix.SYS_EPOLL_PWAIT, 6)}, second},
		"epoll of no set":   {map[string]string{"7/task/7/syscall": call(unix.SYS_EPOLL_PWAIT, 9)}, ""},
		"poll":              {map[string]string{"7/task/7/syscall": call(unix.SYS_PPOLL, 1)}, first},
		"running":           {map[string]string{"7/task/7/syscall": "running\n"}, ""},
		"any thread":        {map[string]string{"7/task/7/syscall": call(unix.SYS_FUTEX, 5), "7/task/9/syscall": call(unix.SYS_READ, 8)}, second},
		"loop, but running": {map[string]string{"7/task/7/syscall": "running\n", "7/task/9/syscall": call(unix.SYS_PPOLL, 1)}, ""},
		"read, and running": {map[string]string{"7/task/7/syscall": "running\n", "7/task/9/syscall": call(unix.SYS_READ, 5)}, first},
		"read before loop":  {map[string]string{"7/task/7/syscall": call(unix.SYS_PPOLL, 1), "7/task/9/syscall": call(unix.SYS_READ, 8)}, second},
		"hidden, in a read": {map[string]string{"7/task/7/wchan": "wait_woken"}, first},
		"hidden, asleep":    {map[string]string{"7/task/7/wchan": "hrtimer_nanosleep"}, ""},
		"hidden entirely":   {map[string]string{"7/task/7/wchan": "0"}, ""},
		"garbage":           {map[string]string{"7/task/7/syscall": "x y\n"}, ""},
		"no call":           {map[string]string{"7/task/7/syscall": "-1 0x7ffd 0x7f00\n"}, ""},
		"empty":             {map[string]string{"7/task/7/syscall": ""}, ""},
		"no threads":        {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, tree(t, connected(tc.threads)).Waiting(7))
		})
	}
}

func TestWaitingWithoutConnections(t *testing.T) {
	t.Parallel()
	p := tree(t, map[string]string{"7/fd/5": "->socket:[50]", "7/task/7/syscall": call(unix.SYS_READ, 5)})
	assert.Empty(t, p.Waiting(7), "a socket that is no TCP connection")
	assert.Empty(t, Proc{Root: t.TempDir()}.Waiting(7))
}

// TestRealHang lets a process wait for a server that never answers, once in
// read(2) and once in an event loop.
func TestRealHang(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"read", "poll"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			server, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			closeLater(t, server)
			address := server.Addr().String()
			_, port, err := net.SplitHostPort(address)
			require.NoError(t, err)
			c := part(t, how, portKey+"="+port, "GORACE=atexit_sleep_ms=0")
			conn, err := server.Accept()
			require.NoError(t, err)
			closeLater(t, conn)
			want := "tcp " + address
			require.Eventually(t, func() bool { return Host().Waiting(c.Process.Pid) == want }, tiertest.Limit(t), pollEvery)
			_, err = conn.Write([]byte("x")) // the answer at last
			require.NoError(t, err)
			require.Eventually(t, func() bool { return Host().Waiting(c.Process.Pid) == "" }, tiertest.Limit(t), pollEvery)
			c.stdin.Close()
			assert.Equal(t, "done", c.line(t))
		})
	}
}

// FuzzParseSyscall feeds anything: no panic, and a descriptor only with a call
// that has one.
func FuzzParseSyscall(f *testing.F) {
	f.Add("running\n")
	f.Add(call(unix.SYS_READ, 5))
	f.Add("-1 0x7ffd 0x7f00\n")
	f.Fuzz(func(t *testing.T, text string) {
		w := parseSyscall(text)
		if w.kind != waitRead && w.kind != waitEpoll {
			assert.Zero(t, w.fd)
		}
	})
}
