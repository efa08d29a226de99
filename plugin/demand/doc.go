// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package demand counts the set shapes that the claims of a cluster request. A shape is a number of devices of a class that
// satisfy a constraint of the class together. The preference KeepWhole avoids breaking up free sets of these shapes, so that
// future claims fit.
package demand
