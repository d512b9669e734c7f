package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// SocketName is the command socket's name in the sandbox's folder.
const SocketName = "ctl.sock"

// Connect opens a sandbox's command socket. It blocks while the socket's queue is full.
func Connect(dir string) (*os.File, error) { return connectSocket(dir, 0) }

// TryConnect is Connect without blocking: EAGAIN while the queue is full.
func TryConnect(dir string) (*os.File, error) { return connectSocket(dir, unix.SOCK_NONBLOCK) }

func connectSocket(dir string, flags int) (*os.File, error) {
	folder, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(folder) // opened with O_PATH
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|flags, 0)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(fmt.Sprintf("/proc/self/fd/%d", folder), SocketName)
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	if err == nil {
		err = unix.SetNonblock(fd, false)
	}
	if err != nil {
		_ = unix.Close(fd) // it is not connected
		return nil, err
	}
	return os.NewFile(uintptr(fd), SocketName), nil
}

// SendExec sends a command and its three streams.
func SendExec(conn *os.File, ask Exec, files [3]*os.File) error {
	raw, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(raw)))
	rights := unix.UnixRights(int(files[0].Fd()), int(files[1].Fd()), int(files[2].Fd()))
	if err := unix.Sendmsg(int(conn.Fd()), head, rights, nil, unix.MSG_NOSIGNAL); err != nil {
		return err
	}
	_, err = conn.Write(raw)
	return err
}

// ReceiveExec receives what SendExec sent. The caller closes the files, also on error.
func ReceiveExec(conn *os.File) (Exec, []*os.File, error) {
	var ask Exec
	head, space := make([]byte, 4), make([]byte, unix.CmsgSpace(3*4))
	n, used, _, _, err := unix.Recvmsg(int(conn.Fd()), head, space, unix.MSG_CMSG_CLOEXEC|unix.MSG_WAITALL)
	if err != nil {
		return ask, nil, err
	}
	files, err := receivedFiles(space[:used])
	if err != nil {
		return ask, files, err
	}
	size := binary.BigEndian.Uint32(head)
	if n != len(head) || len(files) != 3 || size > maxMessage {
		return ask, files, fmt.Errorf("not a valid command: %d bytes with %d streams", size, len(files))
	}
	raw := make([]byte, size)
	if _, err := io.ReadFull(conn, raw); err != nil {
		return ask, files, err
	}
	if err := json.Unmarshal(raw, &ask); err != nil {
		return ask, files, err
	}
	if len(ask.Argv) == 0 {
		return ask, files, &Fail{Kind: FailNotFound, Message: "the command is empty"}
	}
	return ask, files, nil
}

func receivedFiles(control []byte) ([]*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "stream"))
		}
	}
	return files, nil
}
