// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package versions asks a real API server for its kinds, fields and CEL functions of DRA. testdata has the answers of all
// versions, and docs/versions.md shows them in a table.
//
//	go test ./test/versions -update                            # of the version in go.mod
//	CELSET_KUBERNETES=1.34 go test ./test/versions -update     # of an older one
package versions
