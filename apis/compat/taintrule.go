// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

// Taints reports whether a rule adds its taint to a device. A rule without a selector taints no device. A rule with an empty
// selector taints all devices.
func Taints(rule *DeviceTaintRule, driver, pool, device string) bool {
	selector := rule.Spec.DeviceSelector
	return selector != nil && allows(selector.Driver, driver) && allows(selector.Pool, pool) && allows(selector.Device, device)
}

func allows(wanted *string, value string) bool { return wanted == nil || *wanted == value }
