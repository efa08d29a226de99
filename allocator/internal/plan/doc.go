// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan prepares searches and caches their results.
//
//  1. A [Plan] is made once for the claims of a pod. It holds the attributes that the claims read, and the fingerprint of
//     everything in the claims that the result of an Allocate call depends on.
//  2. [OnNode] is a plan on a node. It holds the candidates, the candidates in use, and the view: the properties of the devices
//     that expressions of the claims can read. It looks up tables and results in the cache.
//
// If the cache has no result, a search is set up from the OnNode.
package plan
