package tiertest

import "os"

// ReadsKernelLog reports whether this process can read the kernel's log and the PIDs in it are
// its own: then sbx knows which process the kernel killed for memory.
func ReadsKernelLog() bool {
	f, err := os.Open("/dev/kmsg")
	if err != nil {
		return false
	}
	_ = f.Close()
	namespace, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && namespace == "pid:[4026531836]" // PROC_PID_INIT_INO
}
