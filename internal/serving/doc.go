// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving bounds the resources that a client of celset's HTTP servers can use, even if the client is slow or malicious:
// connections, headers, time of a request, and total memory of bodies.
//
//	listener, err := serving.Listen(ctx, ":8081")
//	if err != nil {
//		return err
//	}
//	return serving.New(ctx, handler).Serve(listener)
//
// If all clients shared one bound, a single client could lock out the others. So each client has [Shares]: if everything is in
// use, the client address that uses most loses its oldest share. An API server sends quickly, and holds only as many
// connections as it waits for answers. So it keeps its connections, however many connections a pod opens. Clients behind one
// address count as one client.
package serving
