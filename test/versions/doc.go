// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package versions asks a real API server for its kinds, fields and CEL functions of DRA. The folder testdata contains the
// answers of API servers of all versions. docs/versions.md has a table of the differences.
//
//	go test ./test/versions -update                            # of the version in go.mod
//	CELSET_KUBERNETES=1.34 go test ./test/versions -update     # of an older one
package versions
