// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

// Shape is a set of devices that somebody may ask for: so many devices of a class that satisfy a
// constraint which the class defines. It is comparable.
type Shape struct {
	// Class is the name of a DeviceClass.
	Class string
	// Constraint is the name of a CEL device constraint that the class defines.
	Constraint string
	// Count is the number of devices, at least 1.
	Count int
}
