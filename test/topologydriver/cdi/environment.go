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

// VariablePrefix begins the names of all variables in containers.
const VariablePrefix = "CELSET_DEVICE_"

// The keys that come before the attributes in the value of a variable.
const (
	keyDriver = "driver"
	keyPool   = "pool"
	keyDevice = "device"
	keyShare  = "share"
	// keyCapacity comes before the name of a capacity. It distinguishes a capacity from an attribute of the same name, because
	// names contain no colon.
	keyCapacity = "capacity:"
)

// A Device holds the information about a device for a container.
type Device struct {
	Driver, Pool, Name string
	// Share is the ID of the share that the claim has. It is empty if the claim has the whole device.
	Share types.UID
	// Attributes are the device's attributes in the ResourceSlice.
	Attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	// Capacity is the part of the device's capacity that the claim has.
	Capacity map[resourceapi.QualifiedName]resource.Quantity
}

// Variable returns the name of a device's environment variable: driver and device in upper case, separated by two underscores,
// with an underscore in place of each dot and hyphen. So devices of different drivers of the node have different variables. A
// share has its own variable, with the share at the end, again after two underscores.
func Variable(driver, device string, share types.UID) string {
	inPlace := strings.NewReplacer(".", "_", "-", "_")
	name := inPlace.Replace(driver) + "__" + inPlace.Replace(device)
	if share != "" {
		name += "__" + inPlace.Replace(string(share))
	}
	return VariablePrefix + strings.ToUpper(name)
}

// Value returns the value of a device's variable: pairs of key and value, with "=" in between, separated by spaces. The keys
// driver, pool and device come first. Then follow the share (if any), the attributes by name, and the capacities by name, with
// "capacity:" before the name. Commas separate the elements of a list. White space in a value is escaped as in a URL: %20.
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

// escape escapes characters that would end a value, or would end a line in the output of the command env.
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

// Parsed is the result of parsing the value of a variable.
type Parsed struct {
	Driver, Pool, Device, Share string
	// Attributes maps names to values as texts, because the variable does not contain types.
	Attributes map[string]string
	// Capacity maps names to the capacities that the claim has of the device. It may be nil.
	Capacity map[string]string
}

// Parse parses the value of a variable, for tests and for programs in containers.
func Parse(value string) (Parsed, error) {
	told := Parsed{Attributes: map[string]string{}}
	for _, pair := range strings.Split(value, " ") {
		key, text, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return Parsed{}, fmt.Errorf("value %q: %q does not have the form key=value", value, pair)
		}
		text, err := url.PathUnescape(text)
		if err != nil {
			return Parsed{}, fmt.Errorf("value %q: %q: %w", value, pair, err)
		}
		told.set(key, text)
	}
	if told.Driver == "" || told.Pool == "" || told.Device == "" {
		return Parsed{}, fmt.Errorf("value %q: must have %s, %s and %s", value, keyDriver, keyPool, keyDevice)
	}
	return told, nil
}

func (t *Parsed) set(key, text string) {
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
