package providers

import "time"

// Facts are what differs between types of providers and decides how others treat
// their sandboxes. The room of a type declares them; no other code compares the name
// of a type (the arch test proves it). The zero value is a service that makes the
// fewest promises.
type Facts struct {
	// HostBound says that the sandboxes live on the machine that made them and that no
	// other host can see them: that another host finds none proves nothing.
	HostBound bool
	// HostProcesses says that the sandboxes are processes of this machine: they see its
	// files, and a run that ends them needs its process table and control groups. It
	// implies HostBound.
	HostProcesses bool
	// InStateDir says that the sandboxes are kept in the state directory of sbx, without
	// which the profile cannot be opened.
	InStateDir bool
	// SizedByProfile says that the settings of the profile give a size to every sandbox
	// that names none. Images, snapshots and the environment variables of sizes, which
	// are meant for services, do not apply.
	SizedByProfile bool
	// OwnsAll says that nobody but sbx makes sandboxes here, so that all of them are ours
	// in a profile that no file configures.
	OwnsAll bool
	// LaunchDefault says that a sandbox here needs no account and costs nothing, so that
	// creates go here where nobody names a profile.
	LaunchDefault bool
	// HidesEnded says that ended sandboxes stay listed without an end, so that `ls` leaves
	// out the older ones unless --all is given.
	HidesEnded bool
	// CreateSettles is for how long a create whose answer nobody has may still make a
	// sandbox, and that be missing from the listing; 0 = not known, see SettleTime.
	CreateSettles time.Duration
	// EndKeeps is what an end without --delete leaves behind; "" counts as EndKeepsState.
	EndKeeps EndKeeps
}

// defaultCreateSettles is granted to a type that states no CreateSettles: a VM has to be
// placed.
const defaultCreateSettles = 60 * time.Second

// SettleTime is CreateSettles, or what is granted to a type that does not state it.
func (f Facts) SettleTime() time.Duration {
	if f.CreateSettles > 0 {
		return f.CreateSettles
	}
	return defaultCreateSettles
}

// DeletesForTask says that a task deletes its sandbox instead of only ending it. Where
// an end leaves no more than a record, a delete would destroy what people still read.
func (f Facts) DeletesForTask() bool { return f.EndKeeps != EndKeepsRecord }

// EndKeeps is what an end without --delete leaves of a sandbox.
type EndKeeps string

// The closed list of what an end leaves.
const (
	EndKeepsNothing EndKeeps = "nothing" // an end destroys all of it, and --delete adds nothing
	EndKeepsRecord  EndKeeps = "record"  // its record and its logs, which cost nothing
	EndKeepsState   EndKeeps = "state"   // a disk, a snapshot or a name, which may cost until --delete
)
