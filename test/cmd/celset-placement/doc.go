// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package celsetplacement has tests of the program celset-placement, and no code of its own. The tests run the program in this
// process, against a hub's API server, with the RBAC rights in the manifests. The tests of the debug page need Chromium and run
// in "make nightly".
package celsetplacement
