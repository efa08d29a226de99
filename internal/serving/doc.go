// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving bounds what the clients of celset's HTTP servers cost, whatever they send and
// however slowly: connections, headers, the time of a request, and the bodies that are in memory
// together.
//
//	listener, err := serving.Listen(ctx, ":8081")
//	if err != nil {
//		return err
//	}
//	return serving.New(ctx, handler).Serve(listener)
//
// A bound that all clients share would let one of them keep the others out. Clients share in
// [Shares]: when all is in use, the address that has the most loses the oldest that it has. An API
// server, which sends at once and has as many connections as it waits for answers, keeps its place
// beside any number of connections of a pod. Clients behind one address are one client.
package serving
