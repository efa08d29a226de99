// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layout tests who may import whom, what programs ship, and the mark of generated files. A new
// package gets a row in the table if a rule holds for it that does not hold for its folder.
package layout
