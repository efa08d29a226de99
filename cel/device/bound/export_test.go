// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

// Absorbed is for the test that enumerates all functions.
var Absorbed = absorbed
