// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
)

// TestExpensiveSelectorsAreRefusedInAllProfiles has a selector that the API server takes and
// that never ends. A scheduler that evaluates it does not come to the pods after it, whatever
// their profile.
func TestExpensiveSelectorsAreRefusedInAllProfiles(t *testing.T) {
	t.Parallel()
	l := newLab(t, "judged", 1)
	driver := l.ring(t, 8).Drivers()[0]
	endless := exactly("mla", resourceapi.ExactDeviceRequest{
		DeviceClassName: driver, Selectors: []resourceapi.DeviceSelector{selector("quantity('1e2000000000').isGreaterThan(quantity('1'))")},
	})
	profiles := []string{stockProfile, celsetProfile, allProfile}
	for _, profile := range profiles {
		l.run(t, profile, profile, endless)
		l.requireRefused(t, profile, "claim "+l.namespace+"/"+profile+", request mla: selector #0: ")
	}
	for _, profile := range profiles {
		l.run(t, profile+"-other", profile, request("mla", driver, 1))
		l.requireRunning(t, profile+"-other")
	}
}
