// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package demand counts the shapes of device sets that the claims of a cluster ask for. The preference KeepWhole keeps sets of
// these shapes whole for future claims.
package demand
