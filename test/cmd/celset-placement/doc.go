// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package celsetplacement has tests of the program celset-placement, and no code of its own. The tests run the program in this
// process, with flags, on a hub and with the rights in the manifests. The tests of the debug page need Chromium and run at night.
package celsetplacement
