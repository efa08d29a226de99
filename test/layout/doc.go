// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layout tests the imports of packages, the dependencies of programs and the marks of generated files. A new package gets
// a row in the table only if its rules differ from its folder's.
package layout
