// Package vercel speaks the API of Vercel Sandbox.
//
// There are two objects: a sandbox, which is a durable name with a configuration
// and a snapshot, and a session, which is one run of its VM. The id of a sandbox
// here is that of its current session, so that an end reaches the run that was
// judged and no other; its name is the sandbox's. Nothing here ever resumes: a
// resume starts a VM and its bill.
package vercel
