// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package parity has no code of its own. Its test holds docs/ocm.md#differences-from-ocm
// and docs/differences.md to the tests: what these pages claim celset does otherwise than
// Open Cluster Management and Kubernetes must be pinned by test functions that exist.
//
//	go test ./test/parity/...
package parity
