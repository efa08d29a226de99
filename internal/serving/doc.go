// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving bounds the resources that clients of celset's HTTP servers can use, even if they send slowly or maliciously:
// connections, headers, request times, and the total memory of bodies.
//
//	listener, err := serving.Listen(ctx, ":8081")
//	if err != nil {
//		return err
//	}
//	return serving.New(ctx, handler).Serve(listener)
//
// With one bound for all clients, a single client could lock out the others. So clients have [Shares]: if everything is in use,
// the address with the largest use loses its oldest share. An API server sends quickly and holds only as many connections as it
// awaits answers. So it keeps its connections no matter how many a pod opens. Clients behind one address count as one client.
package serving
