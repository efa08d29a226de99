// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server runs a Guard behind an admission webhook. The API server calls the webhook for updates of the status of
// claims.
//
//	s, err := server.New(server.Options{Client: client, Namespace: "celset-system", Pod: "celset-webhook-1", ...})
//	err = manager.Add(s)
//	hooks.Register(server.Path, s)
//
// # One Guard of several replicas
//
// A replica judges only while it holds a lease. It measures the time with its own clock: after a successful renewal it judges
// for less than the lease duration, counted from the moment when it sent the renewal. So a paused or disconnected replica stops
// before another replica starts, even if it has not noticed the loss. An answer in flight reaches the API server within the
// webhook's timeout, or never.
//
// The next leader waits until every write that was admitted before is stored or can't be stored any more (guard.Options.Grace).
// Then it lists all claims from etcd. It skips the wait if its predecessor released the lease, because a replica releases its
// lease only after it has seen the outcome of every write that it admitted.
//
// The leader labels its pod (celset.dev/guard) and removes the label from other pods, so that the guard's Service has one
// endpoint. The label only routes requests. A replica that does not lead refuses the requests that it receives.
package server
