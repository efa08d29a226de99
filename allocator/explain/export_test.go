// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

// OnNode is for tests.
var OnNode = (*Problem).onNode
