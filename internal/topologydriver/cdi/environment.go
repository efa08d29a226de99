// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// VariablePrefix begins the names of all variables that are set in containers.
const VariablePrefix = "CELSET_DEVICE_"

// The keys that come before the attributes in the value of a variable.
const (
	keyDriver = "driver"
	keyPool   = "pool"
	keyDevice = "device"
)

// Device is what a container is told of a device.
type Device struct {
	Driver, Pool, Name string
	// Attributes are those of the ResourceSlice.
	Attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
}

// Variable is the name of the environment variable of a device: driver and device in
// upper case, with two underscores between them, and one in place of each dot and hyphen.
// A device of another driver of the node has another variable, whatever its name.
func Variable(driver, device string) string {
	inPlace := strings.NewReplacer(".", "_", "-", "_")
	return VariablePrefix + strings.ToUpper(inPlace.Replace(driver)+"__"+inPlace.Replace(device))
}

// Value is what the variable of a device is set to: pairs of key and value, with "="
// between the two and a space between pairs. The keys driver, pool and device come first,
// then the attributes by name. The elements of a list are separated by commas.
//
// It fails if an attribute can't be written like that. None of a generated topology is.
func (d Device) Value() (string, error) {
	pairs := []string{keyDriver + "=" + d.Driver, keyPool + "=" + d.Pool, keyDevice + "=" + d.Name}
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		value := attributeValue(d.Attributes[name])
		if strings.ContainsAny(value, " \t\r\n") || value == "" {
			return "", fmt.Errorf("device %s of %s: attribute %q: %q is empty or has spaces, so it can't be told in an environment variable",
				d.Name, d.Driver, name, value)
		}
		pairs = append(pairs, string(name)+"="+value)
	}
	return strings.Join(pairs, " "), nil
}

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
	Driver, Pool, Device string
	// Attributes are in the form in which they are told: there is no type.
	Attributes map[string]string
}

// Parse reads the value of a variable, for tests and for programs in containers.
func Parse(value string) (Told, error) {
	told := Told{Attributes: map[string]string{}}
	for _, pair := range strings.Split(value, " ") {
		key, text, found := strings.Cut(pair, "=")
		if !found || key == "" || text == "" {
			return Told{}, fmt.Errorf("value %q: %q is not of the form key=value", value, pair)
		}
		switch key {
		case keyDriver:
			told.Driver = text
		case keyPool:
			told.Pool = text
		case keyDevice:
			told.Device = text
		default:
			told.Attributes[key] = text
		}
	}
	if told.Driver == "" || told.Pool == "" || told.Device == "" {
		return Told{}, fmt.Errorf("value %q: must have %s, %s and %s", value, keyDriver, keyPool, keyDevice)
	}
	return told, nil
}
