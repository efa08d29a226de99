// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server has a Guard judge what the API server asks a webhook about: updates of the status of
// claims that give them devices.
//
//	s, err := server.New(server.Options{Client: client, Namespace: "celset-system", Pod: "celset-webhook-1", ...})
//	err = manager.Add(s)
//	hooks.Register(server.Path, s)
//
// # One Guard of several replicas
//
// A replica judges while it has a lease. It judges by its own clock: from the time at which it asked for a
// renewal that succeeded, for less than the time after which others may take the lease. So a replica that was
// paused, or that the API server has lost, stops before another one starts, whether it has noticed or not. An
// answer that it had on its way reaches the API server in the time that this gives a webhook, or not at all.
//
// The next one waits until everything that was admitted before is stored or can't be any more (guard.Options.Grace),
// and then lists all claims from etcd. It does not wait if the former one gave the lease away: it does so only when
// it has seen what became of all that it had admitted.
//
// The leader labels its pod (celset.dev/guard) and takes the label from others, so that the Service of the guard has one
// endpoint. The label decides only where requests go: a replica that is asked while it does not lead refuses.
package server
