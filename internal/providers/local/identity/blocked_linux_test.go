package identity

import (
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// portKey names the port of the server that the two parts below connect to.
const portKey = "IDENTITY_TEST_PORT"

// blockInRead waits in read(2) for a server on the loopback interface, and
// afterwards for its own input, with the connection still open.
func blockInRead() string {
	port, err := strconv.Atoi(os.Getenv(portKey))
	if err != nil {
		return err.Error()
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err.Error()
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err.Error()
	}
	_, _ = unix.Read(fd, make([]byte, 1))
	_, _ = os.Stdin.Read(make([]byte, 1))
	_ = unix.Close(fd)
	return "done"
}

// blockInPoll waits for the same in the event loop of the runtime.
func blockInPoll() string {
	conn, err := net.Dial("tcp", "127.0.0.1:"+os.Getenv(portKey))
	if err != nil {
		return err.Error()
	}
	_, _ = conn.Read(make([]byte, 1))
	_ = conn.Close()
	return "done"
}
