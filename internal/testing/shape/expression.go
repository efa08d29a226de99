// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"fmt"
	"regexp"
)

// The drivers of the scenarios, which are also their device classes and the domains
// of their attributes.
const (
	acceleratorDriver = "mla.example.com"
	gpuDriver         = "gpu.example.com"
	nicDriver         = "nic.example.com"
)

// short is an attribute as it is written in this file: d.row.
var short = regexp.MustCompile(`\b([do])\.(index|row|col|bridge|id|peers|pcieRoot)\b`)

// written completes the attributes of an expression: d.row becomes
// d.attributes['mla.example.com'].row.
func written(expression string) string {
	return short.ReplaceAllStringFunc(expression, func(match string) string {
		variable, name := match[:1], match[2:]
		domain := acceleratorDriver
		if name == "pcieRoot" {
			domain = "resource.kubernetes.io"
		}
		return fmt.Sprintf("%s.attributes['%s'].%s", variable, domain, name)
	})
}

const (
	// sameBridge: two devices at one bridge.
	sameBridge = `devices.all(d, devices.all(o, d.bridge == o.bridge))`

	// wholePairs: each device has its partner with it.
	wholePairs = `devices.all(d, devices.exists_one(o, d != o && d.bridge == o.bridge))`

	// contiguous: four devices of a chain.
	contiguous = `devices.map(d, d.index).max() - devices.map(d, d.index).min() == 3`

	// contiguousRing12: of a stretch of a ring, all devices but the last one have
	// their successor with them.
	contiguousRing12 = `devices.exists_one(d, !devices.exists(o, o.index == (d.index + 1) % 12))`

	// meshNeighbours is the grid of KEP-5254.
	meshNeighbours = `devices.all(d, devices.filter(o, d != o && (
	d.row == o.row && (d.col == o.col + 1 || d.col == o.col - 1) ||
	d.col == o.col && (d.row == o.row + 1 || d.row == o.row - 1))).size() >= 2)`

	// torusNeighbours is the same with rows and columns that close. It takes the
	// number of both.
	torusNeighbours = `devices.all(d, devices.filter(o, d != o && (
	d.row == o.row && (d.col == (o.col + 1) %% %[1]d || o.col == (d.col + 1) %% %[1]d) ||
	d.col == o.col && (d.row == (o.row + 1) %% %[1]d || o.row == (d.row + 1) %% %[1]d))).size() >= 2)`

	// boundingBox takes the number of rows less one and that of columns less one.
	boundingBox = `devices.map(d, d.row).max() - devices.map(d, d.row).min() == %d &&
	devices.map(d, d.col).max() - devices.map(d, d.col).min() == %d`

	// allLinked: each device is in the list of peers of each other one.
	allLinked = `devices.all(d, devices.all(o, d == o || o.id in d.peers.split(',')))`

	// couples: each device has exactly one of the other driver at its root.
	couples = `devices.all(d, devices.exists_one(o, d.driver != o.driver && d.pcieRoot == o.pcieRoot))`
)

// ofSize is an expression that says the number of devices first, as those of the
// KEP do.
func ofSize(size int, expression string) string {
	return fmt.Sprintf("size(devices) == %d && %s", size, expression)
}
