// Package omoios reads what OmoiOS knows of the sandboxes that it runs at
// Daytona: what their agents did, when they last worked, which tasks they belong
// to. It is a source beside a provider: it neither lists sandboxes nor ends them,
// and OmoiOS has no call that could.
//
// Two habits of that API shape the room. An empty answer about events also stands
// for a broken database, so none is believed until another call, which fails
// honestly, has confirmed it. And reading a sandbox's messages takes them out of
// its queue, so that call never enters here.
package omoios
