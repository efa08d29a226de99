// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package parity has no code of its own. Its test checks docs/ocm.md#differences-from-ocm and docs/differences.md: each
// difference from Open Cluster Management or Kubernetes must name existing test functions.
//
//	go test ./test/parity/...
package parity
