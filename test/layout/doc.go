// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layout has no code of its own. Its tests hold the one set of rules on who may
// import whom, directly and behind other imports, on what programs ship, and on the mark
// of files that are generated.
//
// A new package gets a row in the table if something is true of it that is not true of
// the folder it is in.
package layout
