// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
)

// ofOneDevice are attributes of which there is one value for each device, and numberOf finds a
// number that somebody wrote down of devices or of their NUMA nodes.
var (
	ofOneDevice = []resourceapi.QualifiedName{
		"resource.kubernetes.io/pciBusID", "dra.net/pciAddress", "pciAddress", "pciAddr",
		"uuid", "serial", "deviceID", "dra.net/ifName", "dra.net/rdmaDevice",
	}
	numberOf = regexp.MustCompile(`(numaNode|numa|deviceId|moduleIdx|index|cardIndex)\)? (==|\\u003c|\\u003e|in) ?\[?\d`)
)

// TestAsksNameNoDevice: a claim that names a device, or has its address or number, is one that
// waits for it.
func TestAsksNameNoDevice(t *testing.T) {
	today := todaysTemplates(t)
	pinned := 0
	for _, a := range asks {
		b := newBench(t, a)
		require.Empty(t, b.pins(t, readHardwarePage(t, a.page).templates[a.template]), "%s: %s", a.page, a.template)
		if a.today != "" && len(b.pins(t, today[a.today])) > 0 {
			pinned++
		}
	}
	require.Greater(t, pinned, 10, "today's claims are pinned, else this test shows nothing")
}

// pins are what in a claim speaks of one device.
func (b *bench) pins(t *testing.T, template *resourceapi.ResourceClaimTemplate) []string {
	t.Helper()
	require.NotNil(t, template)
	content, err := json.Marshal(template.Spec)
	require.NoError(t, err)
	pins := numberOf.FindAllString(string(content), -1)
	for _, d := range b.topology.Devices {
		values := []string{d.Name}
		for _, name := range ofOneDevice {
			if value := d.Attributes[name].StringValue; value != nil {
				values = append(values, *value)
			}
		}
		for _, value := range values {
			if regexp.MustCompile(`\b` + regexp.QuoteMeta(value) + `\b`).Match(content) {
				pins = append(pins, value)
			}
		}
	}
	slices.Sort(pins)
	return slices.Compact(pins)
}
