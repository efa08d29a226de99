// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history finds out whether what programs did to claims can be explained at all:
// whether there is an order of their writes, each between its beginning and its end, in
// which no device is given to a claim while another one has it, and in which reads see
// what was written. That is linearizability, and porcupine decides it.
//
//	h := history.New()
//	transport = h.Record("scheduler", transport)    // one for each program
//	h.Read(claims, began)                           // now and then: what was listed since began
//	verdict := h.Check(time.Minute)
//	require.NoError(t, verdict.Err())
//
// Package ledger asks the same of what was stored, which a watch tells. Here it is asked
// of what programs were told, by who stands between them and the API server: an answer
// that contradicts another one is found, and a write that was acknowledged and is not
// there.
//
// # Operations
//
// A write of a claim, of its status or of anything else, leaves the claim with devices or
// without. It is applied if the API server said so. It is refused if the API server said
// that, and then did nothing. What the API server did not answer, or with an error of its
// own, is unknown: it has happened at one time or not at all; but not after a later
// version of the claim was there, because writes carry the version that they change.
//
// Devices don't matter to each other, so the history of each is checked by itself.
package history
