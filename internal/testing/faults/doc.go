// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults breaks what a program and the API server say to each other, in the ways
// in which networks and API servers break it:
//
//	f := faults.New(seed, transport)
//	proxy := f.Serve(api)
//	f.Set(faults.Usual)      // from here on
//	f.Partition()            // nothing gets through,
//	f.Set(faults.None)       // and everything is well again
//	f.Counts()               // what was done
//
// What a program is told may be untrue only in that it does not know what has happened: an
// answer that says "conflict" or "too many requests" is given in place of the API server's,
// which has not seen the request. No watch misses what it does not say it has missed: one
// that was silent ends, and the next is told that its version is too old. An API server
// that lies is nothing a program could be expected to survive.
//
// Which request meets which fault is drawn from the seed, in the order in which requests
// come. That order is not the same the next time.
package faults
