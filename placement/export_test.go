// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

// Remembered is the memory of all Schedulers.
var Remembered = remembered
