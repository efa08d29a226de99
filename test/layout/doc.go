// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layout tests the imports of packages, the dependencies of programs and the marks of generated files. A new package
// needs an entry in testdata/imports.yaml only if its rules differ from the rules of its folder.
package layout
