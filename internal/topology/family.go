// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// MaxDevices is the maximum number of devices of a topology. Nodes have far fewer devices. Without the limit, a
// mistyped size could fill an API server.
const MaxDevices = 4096

// attributes has the attributes that a device publishes.
type attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute

// Family has the common properties of the devices of one driver.
type Family struct {
	// Driver is the name of the DRA driver, a DNS subdomain of at most 63 characters. It is also the domain of the attributes.
	Driver string
	// Prefix is the beginning of the names of the devices: "mla" gives mla-0, mla-1, ... The names must be DNS labels.
	Prefix string
}

// validate returns an error if the family can't have count devices.
func (f Family) validate(count int) error {
	if problems := validation.IsDNS1123Subdomain(f.Driver); len(problems) > 0 {
		return fmt.Errorf("driver %q: %s", f.Driver, strings.Join(problems, "; "))
	}
	if len(f.Driver) > resourceapi.DriverNameMaxLength {
		return fmt.Errorf("driver %q: must be no more than %d characters, is %d",
			f.Driver, resourceapi.DriverNameMaxLength, len(f.Driver))
	}
	// Checking the name of the last device is enough, because this name is the longest.
	if problems := validation.IsDNS1123Label(f.name(count - 1)); len(problems) > 0 {
		return fmt.Errorf("prefix %q: device name %q: %s",
			f.Prefix, f.name(count-1), strings.Join(problems, "; "))
	}
	return nil
}

func (f Family) name(number int) string {
	return f.Prefix + "-" + strconv.Itoa(number)
}

func (f Family) device(number int, at Coordinates, attributes attributes) Device {
	return Device{Driver: f.Driver, Name: f.name(number), Attributes: attributes, Coordinates: at}
}

// checkCount returns an error unless a number of devices, rows or the like is from least to most. what names the number.
func checkCount(what string, count, least, most int) error {
	if count < least || count > most {
		return fmt.Errorf("%s: must be %d to %d, is %d", what, least, most, count)
	}
	return nil
}

// connect adds links to the field Neighbors of the devices. A link is a pair of indexes of devices. It may occur more than once
// and in either direction. A link from a device to itself is ignored.
func connect(devices []Device, links [][2]int) {
	neighbors := make([][]int, len(devices))
	for _, link := range links {
		a, b := link[0], link[1]
		if a != b {
			neighbors[a] = append(neighbors[a], b)
			neighbors[b] = append(neighbors[b], a)
		}
	}
	for i, indices := range neighbors {
		slices.Sort(indices)
		for _, j := range slices.Compact(indices) {
			devices[i].Neighbors = append(devices[i].Neighbors, devices[j].Name)
		}
	}
}

func intAttribute(value int) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: new(int64(value))}
}

func stringAttribute(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: &value}
}
