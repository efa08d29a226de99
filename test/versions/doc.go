// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package versions has no code of its own. Its test asks a real API server what it has of DRA: kinds
// that it serves, fields that it knows, and functions that selectors of devices may call. What the API
// servers of all versions said is in testdata, and docs/versions.md has a table of it.
//
//	go test ./test/versions -update                            # of the version in go.mod
//	CELSET_KUBERNETES=1.34 go test ./test/versions -update     # of an older one
package versions
