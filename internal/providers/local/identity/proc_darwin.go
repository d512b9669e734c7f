package identity

import (
	"bytes"
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The states of sys/proc.h, for the letters of Stat.State.
const (
	stateStopped = 4
	stateZombie  = 5
)

func readKinfo(pid int) (*unix.KinfoProc, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	switch {
	case errors.Is(err, unix.EIO), errors.Is(err, unix.ESRCH): // no entry for that number
		return nil, ErrDead
	case err != nil:
		return nil, os.NewSyscallError("sysctl kern.proc.pid", err)
	case int(k.Proc.P_pid) != pid:
		return nil, ErrDead
	}
	return k, nil
}

// startOf is the start time in microseconds since 1970.
func startOf(k *unix.KinfoProc) uint64 {
	t := k.Proc.P_starttime
	return uint64(t.Sec)*1e6 + uint64(t.Usec)
}

// Stat reads one process. Errors: ErrDead when there is none.
func (p Proc) Stat(pid int) (Stat, error) {
	k, err := readKinfo(pid)
	if err != nil {
		return Stat{}, err
	}
	s := Stat{PID: pid, PPID: int(k.Eproc.Ppid), State: 'S', StartTicks: startOf(k)}
	comm, _, _ := bytes.Cut(k.Proc.P_comm[:], []byte{0})
	s.Comm = string(comm)
	switch k.Proc.P_stat {
	case stateStopped:
		s.State = 'T'
	case stateZombie:
		s.State = 'Z'
	default:
		s.addTaskInfo()
	}
	return s, nil
}

// taskInfo is struct proc_taskinfo of sys/proc_info.h.
type taskInfo struct {
	virtual, resident     uint64 // bytes
	user, system          uint64 // in units of hw.tbfrequency
	threadUser, threadSys uint64
	numbers               [9]int32
	threads               int32
	running               int32
	priority              int32
}

// addTaskInfo fills memory, CPU time and threads; of another user's process they stay zero.
func (s *Stat) addTaskInfo() {
	const callPIDInfo, flavorTaskInfo = 2, 4
	var info taskInfo
	n, _, errno := unix.Syscall6(unix.SYS_PROC_INFO, callPIDInfo, uintptr(s.PID), flavorTaskInfo, 0,
		uintptr(unsafe.Pointer(&info)), unsafe.Sizeof(info))
	if errno != 0 || n != unsafe.Sizeof(info) {
		return
	}
	s.RSSBytes, s.Threads = int64(info.resident), int(info.threads)
	if info.running > 0 {
		s.State = 'R'
	}
	if hz, err := unix.SysctlUint64("hw.tbfrequency"); err == nil && hz >= TicksPerSecond {
		s.UTimeSTimeTicks = (info.user + info.system) / (hz / TicksPerSecond)
	}
}

func (p Proc) listPIDs() ([]int, error) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, os.NewSyscallError("sysctl kern.proc.all", err)
	}
	list := make([]int, 0, len(all))
	for i := range all {
		if pid := int(all[i].Proc.P_pid); pid > 0 {
			list = append(list, pid)
		}
	}
	return list, nil
}

func (p Proc) hasEntry(pid int, entry string) bool {
	answer, err := unix.SysctlRaw("kern.procargs2", pid)
	return err == nil && procargsHave(answer, entry)
}

// IgnoresTerm reports whether the process ignores SIGTERM.
func (p Proc) IgnoresTerm(pid int) (bool, error) {
	k, err := readKinfo(pid)
	if err != nil {
		return false, err
	}
	return k.Proc.P_sigignore&sigterm != 0, nil
}

// IOOperations is unknown.
func (p Proc) IOOperations(int) (int64, bool) { return 0, false }

// BusiestThread is unknown.
func (p Proc) BusiestThread(int) (Thread, bool) { return Thread{}, false }

// Waiting is unknown.
func (p Proc) Waiting(int) string { return "" }
