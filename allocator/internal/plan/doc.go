// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan prepares searches and caches their results.
//
//  1. A [Plan] is made once for the claims of a pod. It holds the attributes that the claims read, and everything that an
//     answer depends on.
//  2. [OnNode] is a plan on a node. It holds the candidates, the candidates in use, and the view: for each device, the
//     properties that expressions of the claims can read. It asks the cache for tables and answers.
//
// If the cache has no answer, a search is set up from the plan on the node.
package plan
