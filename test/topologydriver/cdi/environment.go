// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// VariablePrefix begins the names of all variables that are set in containers.
const VariablePrefix = "CELSET_DEVICE_"

// The keys that come before the attributes in the value of a variable.
const (
	keyDriver = "driver"
	keyPool   = "pool"
	keyDevice = "device"
	keyShare  = "share"
	// keyCapacity comes before the name of a capacity, which may be that of an attribute,
	// too. Neither has a colon.
	keyCapacity = "capacity:"
)

// Device is what a container is told of a device.
type Device struct {
	Driver, Pool, Name string
	// Share tells apart what several claims, or requests of one, have of a device. Empty:
	// they have all of it.
	Share types.UID
	// Attributes are those of the ResourceSlice.
	Attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	// Capacity is what the claim has.
	Capacity map[resourceapi.QualifiedName]resource.Quantity
}

// Variable is the name of the environment variable of a device: driver and device in
// upper case, with two underscores between them, and one in place of each dot and hyphen.
// A device of another driver of the node has another variable, whatever its name. A share
// of a device has its own, with the share at the end, again after two underscores.
func Variable(driver, device string, share types.UID) string {
	inPlace := strings.NewReplacer(".", "_", "-", "_")
	name := inPlace.Replace(driver) + "__" + inPlace.Replace(device)
	if share != "" {
		name += "__" + inPlace.Replace(string(share))
	}
	return VariablePrefix + strings.ToUpper(name)
}

// Value is what the variable of a device is set to: pairs of key and value, with "="
// between the two and a space between pairs. The keys driver, pool and device come first,
// then share if it is one, the attributes by name, and the capacities by name, with
// "capacity:" before it. The elements of a list are separated by commas. White space in a
// value is written as in a URL: %20.
func (d Device) Value() string {
	pairs := []string{keyDriver + "=" + d.Driver, keyPool + "=" + d.Pool, keyDevice + "=" + d.Name}
	if d.Share != "" {
		pairs = append(pairs, keyShare+"="+string(d.Share))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		pairs = append(pairs, string(name)+"="+escape.Replace(attributeValue(d.Attributes[name])))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		quantity := d.Capacity[name]
		pairs = append(pairs, keyCapacity+string(name)+"="+quantity.String())
	}
	return strings.Join(pairs, " ")
}

// escape writes what would end a value, or a line of what "env" prints.
var escape = strings.NewReplacer("%", "%25", " ", "%20", "\t", "%09", "\r", "%0D", "\n", "%0A")

func attributeValue(a resourceapi.DeviceAttribute) string {
	switch {
	case a.IntValue != nil:
		return strconv.FormatInt(*a.IntValue, 10)
	case a.BoolValue != nil:
		return strconv.FormatBool(*a.BoolValue)
	case a.StringValue != nil:
		return *a.StringValue
	case a.VersionValue != nil:
		return *a.VersionValue
	case a.IntValues != nil:
		return joined(a.IntValues)
	case a.BoolValues != nil:
		return joined(a.BoolValues)
	case a.StringValues != nil:
		return strings.Join(a.StringValues, ",")
	default:
		return strings.Join(a.VersionValues, ",")
	}
}

func joined[T any](list []T) string {
	texts := make([]string, len(list))
	for i, one := range list {
		texts[i] = fmt.Sprint(one)
	}
	return strings.Join(texts, ",")
}

// Told is what a container reads from the variable of a device.
type Told struct {
	Driver, Pool, Device, Share string
	// Attributes are in the form in which they are told: there is no type.
	Attributes map[string]string
	// Capacity is what the container has of the device, or nil.
	Capacity map[string]string
}

// Parse reads the value of a variable, for tests and for programs in containers.
func Parse(value string) (Told, error) {
	told := Told{Attributes: map[string]string{}}
	for _, pair := range strings.Split(value, " ") {
		key, text, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return Told{}, fmt.Errorf("value %q: %q is not of the form key=value", value, pair)
		}
		text, err := url.PathUnescape(text)
		if err != nil {
			return Told{}, fmt.Errorf("value %q: %q: %w", value, pair, err)
		}
		told.set(key, text)
	}
	if told.Driver == "" || told.Pool == "" || told.Device == "" {
		return Told{}, fmt.Errorf("value %q: must have %s, %s and %s", value, keyDriver, keyPool, keyDevice)
	}
	return told, nil
}

func (t *Told) set(key, text string) {
	capacity, isCapacity := strings.CutPrefix(key, keyCapacity)
	switch {
	case key == keyDriver:
		t.Driver = text
	case key == keyPool:
		t.Pool = text
	case key == keyDevice:
		t.Device = text
	case key == keyShare:
		t.Share = text
	case !isCapacity:
		t.Attributes[key] = text
	default:
		if t.Capacity == nil {
			t.Capacity = map[string]string{}
		}
		t.Capacity[capacity] = text
	}
}
