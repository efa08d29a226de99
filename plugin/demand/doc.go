// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package demand counts the shapes that the claims of a cluster ask for. A shape is a number of devices of a class that satisfy a
// constraint of the class. The preference KeepWhole keeps such sets of devices whole for future claims.
package demand
