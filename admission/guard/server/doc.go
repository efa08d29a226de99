// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server runs a Guard behind an admission webhook for updates of the status of claims that allocate devices.
//
//	s, err := server.New(server.Options{Client: client, Namespace: "celset-system", Pod: "celset-webhook-1", ...})
//	err = manager.Add(s)
//	hooks.Register(server.Path, s)
//
// # One Guard of several replicas
//
// A replica judges while it holds a lease. It uses its own clock. After a successful renewal it judges for less than the lease
// duration, counted from the time it sent the renewal. So a paused or disconnected replica stops before another one starts, even
// if it has not noticed. An answer in flight reaches the API server within the timeout of the webhook, or never.
//
// The next leader waits until everything admitted before is stored or can't be stored any more (guard.Options.Grace), and then
// lists all claims from etcd. It skips the wait if its predecessor released the lease. A replica releases its lease only after it
// has seen the outcome of everything that it admitted.
//
// The leader labels its pod (celset.dev/guard) and removes the label from other pods, so that the Service of the guard has one
// endpoint. The label only routes requests: a replica that receives a request while it does not lead refuses it.
package server
